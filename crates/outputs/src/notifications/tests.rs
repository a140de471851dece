//! What notices say, and mail servers of every kind.

use super::*;
use crate::testing::smtp::{Security, Smtp};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;

fn notice(occasion: Occasion) -> Notice {
    Notice {
        occasion,
        job: "docs".into(),
        description: "the handbook".into(),
        run: 3,
        started_ms: Some(0),
        at_ms: 86_400_000,
        error: (occasion == Occasion::ErrorAbort).then(|| "the disk is full".to_owned()),
        documents: vec![("done".into(), 7)],
    }
}

#[test]
fn a_notice_says_what_has_happened() {
    let json = notice(Occasion::ErrorAbort).to_json();
    let expected = serde_json::json!({
        "event": "error abort", "job": "docs", "description": "the handbook", "run": 3,
        "started": "1970-01-01T00:00:00Z", "time": "1970-01-02T00:00:00Z",
        "error": "the disk is full", "documents": {"done": 7}
    });
    assert_eq!(json, expected);
    let sentence = notice(Occasion::ErrorAbort).sentence();
    assert_eq!(sentence, "job docs: run 3 was aborted: the disk is full");
    for occasion in Occasion::ALL {
        assert!(notice(occasion).sentence().starts_with("job docs: run 3 "), "{occasion:?}");
    }
}

#[test]
fn occasions_are_named_or_all_are_meant() {
    assert!(Occasion::ALL.iter().all(|it| is_among(&[], *it)));
    let some = vec!["end".to_owned(), "restart".to_owned()];
    let among: Vec<Occasion> =
        Occasion::ALL.into_iter().filter(|it| is_among(&some, *it)).collect();
    assert_eq!(among, [Occasion::End, Occasion::Restart]);
    assert!(check_events(&some).is_ok());
    assert!(check_events(&["ende".to_owned()]).unwrap_err().contains("schedule pause"));
}

/// A certificate for localhost, as a server has it and as a file.
fn certificate() -> (Arc<ServerConfig>, tempfile::NamedTempFile) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), crate::testing::pem(made.cert.der())).unwrap();
    (Arc::new(config), file)
}

fn config(smtp: &Smtp, security: &str, ca_file: &str) -> String {
    serde_json::json!({
        "server": "localhost", "port": smtp.port(), "security": security, "ca_file": ca_file,
        "from": "Crawler <crawler@example.com>", "to": ["admin@example.com", "b@example.com"],
        "timeout_ms": 5000,
    })
    .to_string()
}

#[test]
fn a_mail_arrives_in_the_open_and_in_secret() {
    let (tls, file) = certificate();
    let ca_file = file.path().to_str().unwrap();
    for (security, name) in [
        (Security::Plain, "plain"),
        (Security::StartTls(tls.clone()), "starttls"),
        (Security::Tls(tls.clone()), "tls"),
    ] {
        let smtp = Smtp::start(security);
        let mut email = email::open(&config(&smtp, name, ca_file)).unwrap();
        email.check().unwrap();
        email.send(&notice(Occasion::End)).unwrap();
        let mail = smtp.wait_for(1).remove(0);
        assert_eq!(mail.from, "crawler@example.com");
        assert_eq!(mail.to, ["admin@example.com", "b@example.com"]);
        assert_eq!(mail.is_secret, name != "plain", "{name}");
        for words in ["Subject: job docs: run 3 is over", "documents done: 7", "@driftline>"] {
            assert!(mail.text.contains(words), "{words}: {}", mail.text);
        }
    }
}

#[test]
fn nothing_is_said_to_a_mail_server_that_cannot_be_trusted() {
    let (tls, _) = certificate();
    for (security, name) in [
        (Security::StartTls(tls.clone()), "starttls"),
        (Security::Tls(tls.clone()), "tls"),
        (Security::Plain, "starttls"),
    ] {
        let smtp = Smtp::start(security);
        let mut email = email::open(&config(&smtp, name, "")).unwrap();
        let unavailable = email.send(&notice(Occasion::End)).unwrap_err();
        assert!(unavailable.why.contains("localhost"), "{}", unavailable.why);
        assert!(smtp.mails().is_empty());
    }
}

#[test]
fn a_login_is_sent_and_a_refusal_is_told() {
    let smtp = Smtp::start(Security::Plain);
    let mut json: Json = serde_json::from_str(&config(&smtp, "plain", "")).unwrap();
    json["user"] = "crawler".into();
    json["password"] = "hunter2".into();
    let mut email = email::open(&json.to_string()).unwrap();
    smtp.refuse("451 come back later");
    let unavailable = email.send(&notice(Occasion::End)).unwrap_err();
    assert!(
        unavailable.why.contains("come back later") && !unavailable.why.contains("hunter2"),
        "{}",
        unavailable.why
    );
    email.send(&notice(Occasion::End)).unwrap();
    assert!(smtp.wait_for(1)[0].login.is_some());
    drop(smtp);
    assert!(email.check().unwrap_err().why.contains("cannot be used"));
}

#[test]
fn no_mail_is_led_to_a_metadata_service() {
    let settings = serde_json::json!({
        "server": "169.254.169.254", "security": "plain", "from": "a@b.c", "to": ["d@e.f"],
        "timeout_ms": 5000,
    });
    let mut email = email::open(&settings.to_string()).unwrap();
    let away = email.send(&notice(Occasion::End)).unwrap_err();
    assert!(away.why.contains("metadata"), "{}", away.why);
    assert!(email.check().unwrap_err().why.contains("metadata"));
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_their_field() {
    let good = serde_json::json!({"server": "mail.example.com", "from": "a@b.c", "to": ["d@e.f"]});
    assert!((email::CONNECTOR.check_config)(&good.to_string()).is_ok());
    for (field, value) in [
        ("server", serde_json::json!("http://mail")),
        ("from", serde_json::json!("nobody")),
        ("to", serde_json::json!([])),
        ("to", serde_json::json!(["a@b.c\nBcc: x@y.z"])),
        ("security", serde_json::json!("ssl")),
        ("port", serde_json::json!(70000)),
        ("events", serde_json::json!(["x"])),
    ] {
        let mut config = good.clone();
        config[field] = value;
        let refused = (email::CONNECTOR.check_config)(&config.to_string()).unwrap_err();
        assert!(refused.contains(field) || field == "port", "{config}: {refused}");
    }
}
