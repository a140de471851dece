//! The sentence for people behind a code that a table keeps.
//!
//! Relies on [`super::outcome`] for both. Invariant: every code of a reason has one.

use super::outcome::Reason;

/// Codes of reasons for which a URL is never asked for.
pub const REFUSED: [&str; 8] =
    ["url", "port", "address", "localhost", "metadata", "own-address", "hop-scope", "hop-robots"];

/// Codes of refusals that a job lifts with `allow_private`.
pub const PRIVATE: [&str; 2] = ["address", "localhost"];

/// Codes of reasons that mean that nobody answered ([`Reason::is_no_answer`]).
pub fn no_answer() -> impl Iterator<Item = String> {
    PLAIN.iter().filter(|it| it.is_no_answer()).map(|it| it.code().into_owned())
}

/// Reasons whose sentence needs nothing but their code.
const PLAIN: [Reason; 36] = [
    Reason::Url,
    Reason::Localhost,
    Reason::Metadata,
    Reason::OwnAddress,
    Reason::HopScope,
    Reason::HopRobots,
    Reason::RedirectLimit,
    Reason::RedirectLoop,
    Reason::RedirectTarget,
    Reason::TlsExpired,
    Reason::TlsNotYetValid,
    Reason::TlsWrongHost,
    Reason::TlsSelfSigned,
    Reason::TlsUnknownIssuer,
    Reason::TlsRevoked,
    Reason::TlsSignature,
    Reason::TlsCertificate,
    Reason::TlsProtocol,
    Reason::OpenFiles,
    Reason::Dns,
    Reason::ConnectRefused,
    Reason::Connect,
    Reason::ConnectTimeout,
    Reason::ConnectionLost,
    Reason::FirstByteTimeout,
    Reason::IdleTimeout,
    Reason::TotalTimeout,
    Reason::TooSlow,
    Reason::HeadersTooLarge,
    Reason::AmbiguousLength,
    Reason::Protocol,
    Reason::UnknownEncoding,
    Reason::TooManyEncodings,
    Reason::CorruptEncoding,
    Reason::TooLarge,
    Reason::Internal,
];

/// The sentence of a stored code; `None` for one that no reason has.
pub fn of(code: &str) -> Option<String> {
    match code {
        "port" => Some("its port is not allowed for web pages".to_owned()),
        "address" => Some("the address is not on the public internet".to_owned()),
        _ => match code.strip_prefix("http-").and_then(|status| status.parse().ok()) {
            Some(status) => Some(Reason::Status(status).to_string()),
            None => PLAIN.iter().find(|it| it.code() == code).map(ToString::to_string),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_of() {
        for reason in PLAIN {
            assert_eq!(of(&reason.code()), Some(reason.to_string()));
        }
        assert_eq!(of("http-418"), Some(Reason::Status(418).to_string()));
        for code in REFUSED {
            assert!(of(code).is_some(), "{code}");
        }
        assert_eq!((of("http-x"), of("dance")), (None, None));
        assert!(no_answer().any(|code| code == "connect-refused") && no_answer().count() == 8);
    }
}
