//! The sentence for people behind a code that a table keeps.
//!
//! Relies on [`super::outcome`] for both. Invariant: every code of a reason has one.

use super::outcome::Reason;

/// What a reason means for whoever wants the document nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The URL is not asked for unless the job says `allow_private`.
    Private,
    /// The URL is never asked for.
    Refused,
    /// There is no secure connection.
    Insecure,
    /// The host has no address.
    Unresolved,
    /// The server does not let us in.
    Denied,
    /// Anything else.
    Other,
}

/// Codes of refusals that a job lifts with `allow_private`.
pub const PRIVATE: [&str; 2] = ["address", "localhost"];

/// Codes of reasons that mean that nobody answered ([`Reason::is_no_answer`]).
pub fn no_answer() -> impl Iterator<Item = String> {
    PLAIN.iter().filter(|it| it.is_no_answer()).map(|it| it.code().into_owned())
}

/// What a stored code means.
pub fn trouble(code: &str) -> Trouble {
    if PRIVATE.contains(&code) {
        return Trouble::Private;
    }
    match reason_of(code) {
        Some(
            Reason::Url
            | Reason::Port(_)
            | Reason::Metadata
            | Reason::OwnAddress
            | Reason::HopScope
            | Reason::HopRobots,
        ) => Trouble::Refused,
        Some(
            Reason::TlsExpired
            | Reason::TlsNotYetValid
            | Reason::TlsWrongHost
            | Reason::TlsSelfSigned
            | Reason::TlsUnknownIssuer
            | Reason::TlsRevoked
            | Reason::TlsSignature
            | Reason::TlsCertificate
            | Reason::TlsProtocol,
        ) => Trouble::Insecure,
        Some(Reason::Dns) => Trouble::Unresolved,
        Some(Reason::Status(401 | 403)) => Trouble::Denied,
        _ => Trouble::Other,
    }
}

/// The reason of a code; what the code does not say of it is left empty.
fn reason_of(code: &str) -> Option<Reason> {
    let status = || code.strip_prefix("http-")?.parse().ok().map(Reason::Status);
    let others = [Reason::Port(0), Reason::Address("")];
    PLAIN.into_iter().chain(others).find(|it| it.code() == code).or_else(status)
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
    Some(match reason_of(code)? {
        Reason::Port(_) => "its port is not allowed for web pages".to_owned(),
        Reason::Address(_) => "the address is not on the public internet".to_owned(),
        reason => reason.to_string(),
    })
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
        for code in ["port", "address"] {
            assert!(of(code).is_some(), "{code}");
        }
        assert_eq!((of("http-x"), of("dance")), (None, None));
        assert_eq!(PRIVATE.map(trouble), [Trouble::Private; 2]);
        let refused = ["url", "port", "metadata", "own-address", "hop-scope", "hop-robots"];
        assert_eq!(refused.map(trouble), [Trouble::Refused; 6]);
        let others = ["tls-expired", "tls-protocol", "dns", "http-403", "http-503", "dance"];
        let [insecure, denied] = [Trouble::Insecure, Trouble::Denied];
        let meant =
            [insecure, insecure, Trouble::Unresolved, denied, Trouble::Other, Trouble::Other];
        assert_eq!(others.map(trouble), meant);
        assert!(no_answer().any(|code| code == "connect-refused") && no_answer().count() == 8);
    }
}
