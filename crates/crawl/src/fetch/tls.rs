//! TLS: whom we trust, and the exact reason when we do not.
//!
//! rustls with aws-lc-rs, TLS 1.2 and 1.3. The roots are Mozilla's, compiled in, so
//! that every machine of a crawl judges a certificate alike; an intranet's own
//! authority is added by name. A certificate may have several faults, of which the one that
//! matters is named: that it is for another host, then that its time has not come or is
//! over, then what else keeps it from being trusted. Invariant: nothing is sent to a server
//! whose certificate is not good.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};

use super::outcome::Reason;

/// The protocols we speak, best first.
pub(super) const ALPN_H2: &[u8] = b"h2";
const ALPN_H1: &[u8] = b"http/1.1";

/// The settings of all our TLS connections. `extra_roots` are trusted beside
/// Mozilla's; one that is no certificate makes the whole unusable.
pub(super) fn client_config(
    extra_roots: &[CertificateDer<'static>],
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in extra_roots {
        roots.add(root.clone())?;
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let mut config = with_verifier(provider, inner)?;
    config.alpn_protocols = vec![ALPN_H2.to_vec(), ALPN_H1.to_vec()];
    Ok(config)
}

fn with_verifier(
    provider: Arc<CryptoProvider>,
    inner: Arc<WebPkiServerVerifier>,
) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { inner }))
        .with_no_client_auth())
}

/// webpki's verdict, unchanged but for the name of a refusal. It names the first fault that
/// it meets, which is in the validity, then in the chain, then in the name; and it does not
/// tell a server that vouches for itself from one with an unknown issuer.
#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
}

#[derive(Debug)]
struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed certificate")
    }
}

impl std::error::Error for SelfSigned {}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            Err(Error::InvalidCertificate(fault)) => {
                let fault = fault_that_matters(fault, end_entity, server_name);
                Err(Error::InvalidCertificate(fault))
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// What to call a refusal that stands already, for the first fault of a certificate.
fn fault_that_matters(
    first: CertificateError,
    end_entity: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
) -> CertificateError {
    if let Some(wrong_host) = wrong_host(end_entity, server_name) {
        return wrong_host;
    }
    match first {
        CertificateError::UnknownIssuer | CertificateError::Other(_)
            if is_self_issued(end_entity) =>
        {
            CertificateError::Other(OtherError(Arc::new(SelfSigned)))
        }
        first => first,
    }
}

/// The fault of a certificate that is for other hosts. One that names no host at all is not
/// for another: then its other faults say more.
fn wrong_host(
    end_entity: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
) -> Option<CertificateError> {
    let certificate = ParsedCertificate::try_from(end_entity).ok()?;
    let Err(Error::InvalidCertificate(fault)) = verify_server_name(&certificate, server_name)
    else {
        return None;
    };
    match &fault {
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            Some(fault)
        }
        _ => None,
    }
}

/// Whether issuer and subject of a certificate are the same. Used only to name a
/// refusal that stands already, so a certificate that lies about it gains nothing.
fn is_self_issued(certificate: &[u8]) -> bool {
    issuer_and_subject(certificate).is_some_and(|(issuer, subject)| issuer == subject)
}

/// RFC 5280: the certificate holds the signed part, and that a version, a serial
/// number, an algorithm, the issuer, the validity and the subject, in this order.
fn issuer_and_subject(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    const VERSION: u8 = 0xa0;
    let (_, inside, _) = der_element(certificate)?;
    let (_, signed, _) = der_element(inside)?;
    let (tag, _, after_first) = der_element(signed)?;
    let (_, _, after_serial) =
        if tag == VERSION { der_element(after_first)? } else { (tag, signed, after_first) };
    let (_, _, after_algorithm) = der_element(after_serial)?;
    let (_, issuer, after_issuer) = der_element(after_algorithm)?;
    let (_, _, after_validity) = der_element(after_issuer)?;
    let (_, subject, _) = der_element(after_validity)?;
    Some((issuer, subject))
}

/// The tag and content of the first element, and what follows it.
fn der_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk::<2>()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        length = 0;
        let digits = usize::from(first & 0x7f);
        if digits > 3 {
            return None;
        }
        for _ in 0..digits {
            let (digit, after) = rest.split_first()?;
            length = length << 8 | usize::from(*digit);
            rest = after;
        }
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

/// The reason in a failed handshake.
pub(super) fn reason(error: &io::Error) -> Reason {
    let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return Reason::ConnectionLost;
    };
    match inner {
        Error::InvalidCertificate(fault) => certificate_reason(fault),
        _ => Reason::TlsProtocol,
    }
}

fn certificate_reason(fault: &CertificateError) -> Reason {
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Reason::TlsExpired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Reason::TlsNotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Reason::TlsWrongHost
        }
        CertificateError::UnknownIssuer => Reason::TlsUnknownIssuer,
        CertificateError::Revoked => Reason::TlsRevoked,
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            Reason::TlsSignature
        }
        CertificateError::Other(other) if other.0.is::<SelfSigned>() => Reason::TlsSelfSigned,
        _ => Reason::TlsCertificate,
    }
}
