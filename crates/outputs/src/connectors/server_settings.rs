//! Settings that every connector has whose other end is a server: the login, the
//! certificates that are trusted, and the time a request may take.
//!
//! A connector's configuration holds [`LoginSettings`] and [`RequestSettings`] flattened,
//! so that they are fields of its form like any other. Invariant: their names are those
//! of [`USER`], [`PASSWORD`], [`CA_FILE`] and [`TIMEOUT`].

use super::read;
use crate::http::{self, Login, ServerClient, ServerOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, SettingKind};

/// The login at a server; without a user there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct LoginSettings {
    pub user: String,
    pub password: Option<String>,
}

impl LoginSettings {
    /// What requests say of who asks.
    pub fn login(&self) -> Login {
        match self.user.as_str() {
            "" => Login::None,
            user => Login::Basic(user.to_owned(), self.password.clone().unwrap_or_default()),
        }
    }
}

/// How requests to a server are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct RequestSettings {
    pub ca_file: String,
    pub timeout_ms: i64,
}

impl Default for RequestSettings {
    fn default() -> RequestSettings {
        RequestSettings { ca_file: String::new(), timeout_ms: http::TIMEOUT_MS }
    }
}

impl RequestSettings {
    /// A client of the server at an address; nothing is asked yet.
    pub fn server(&self, url: &str, login: Login) -> Result<ServerClient, String> {
        let (ca_file, timeout_ms) = (self.ca_file.as_str(), self.timeout_ms);
        ServerClient::new(ServerOptions { url, login, ca_file, timeout_ms })
    }

    /// Refuses an address that is none, and a time that no request may take.
    pub fn check(&self, url: &str) -> Result<(), String> {
        http::address("url", url)?;
        http::check_timeout(self.timeout_ms)
    }
}

/// Reads JSON of a form with flattened settings, as [`read`] does. serde does not list the
/// fields of such a form when it meets another one, so the list is added here.
pub(crate) fn read_flattened<T: DeserializeOwned>(
    text: &str,
    settings: &[ConfigField],
) -> Result<T, String> {
    read(text).map_err(|error| {
        if !error.starts_with("unknown field") {
            return error;
        }
        let names: Vec<String> = settings.iter().map(|it| format!("`{}`", it.name)).collect();
        format!("{error}, expected one of {}", names.join(", "))
    })
}

/// The user of a server that asks for one.
pub(crate) const USER: ConfigField = ConfigField {
    name: "user",
    about: "the user, where the server asks for one",
    example: "driftline",
    default: Some(""),
    kind: SettingKind::Text,
};

pub(crate) const PASSWORD: ConfigField = ConfigField {
    name: "password",
    about: "the user's password",
    example: "correct horse battery staple",
    default: None,
    kind: SettingKind::Secret,
};

/// What requests are signed with.
pub(crate) const SECRET: ConfigField = ConfigField {
    name: "secret",
    about: "signs every request, so that the receiver knows whom it is from",
    example: "correct horse battery staple",
    default: None,
    kind: SettingKind::Secret,
};

/// Certificates of authorities that are trusted beside the usual ones.
pub(crate) const CA_FILE: ConfigField = ConfigField {
    name: "ca_file",
    about: "a file with certificates (PEM) of authorities that are trusted beside the usual ones",
    example: "/etc/ssl/certs/ca-certificates.crt",
    default: Some(""),
    kind: SettingKind::Text,
};

/// How long a request may take.
pub(crate) const TIMEOUT: ConfigField = ConfigField {
    name: "timeout_ms",
    about: "how long a request may take",
    example: "1min",
    default: Some("30s"),
    kind: SettingKind::Seconds,
};

#[cfg(test)]
mod tests {
    use crate::connectors::{opensearch, solr, webhook};

    #[test]
    fn a_field_that_is_none_of_a_connector_is_refused_with_those_there_are() {
        for connector in [opensearch::CONNECTOR, solr::CONNECTOR, webhook::CONNECTOR] {
            let check = connector.check_config;
            let refused = check(r#"{"url": "http://a", "usr": "x"}"#).unwrap_err();
            let list = "unknown field `usr`, expected one of `url`, ";
            assert!(refused.starts_with(list) && refused.contains("`user`"), "{refused}");
        }
    }

    #[test]
    fn fields_are_stored_in_the_order_they_have_always_had() {
        let check = opensearch::CONNECTOR.check_config;
        assert_eq!(
            check(r#"{"url": "http://a", "user": "u", "timeout_ms": 500}"#).unwrap(),
            concat!(
                r#"{"url":"http://a","index":"documents","refresh":true,"user":"u","#,
                r#""password":null,"api_key":null,"ca_file":"","timeout_ms":500}"#
            )
        );
    }
}
