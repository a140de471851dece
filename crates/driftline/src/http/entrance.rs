//! Whether a request is let in: whom it is meant for, and who sends it.
//!
//! Relies on hyper for heads that are too large (431), that are no HTTP (400), and for requests
//! with both Transfer-Encoding and Content-Length: the first counts, and the connection is closed.
//! Invariant: a request that two servers could take to be for different hosts is refused (400),
//! so that what a proxy has checked is what is answered here.

use super::access::ApiAccess;
use super::problem::Problem;
use axum::extract::Request;
use axum::http::{Method, StatusCode, Version, header};

/// Refuses a request that nobody here is meant by, or that another site's page sends.
pub fn let_in(access: &ApiAccess, request: &Request) -> Result<(), Problem> {
    if !access.knows_host(host_of(request)?) {
        let why = "this server does not serve that host name; add it with --host NAME";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, why));
    }
    let is_foreign = request.headers().get("sec-fetch-site").is_some_and(|it| it == "cross-site");
    if is_foreign && request.method() != Method::GET {
        let why = "cross-site requests cannot change anything";
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    Ok(())
}

/// The host that a request is for, with its port if it names one (RFC 9112, section 3.2).
fn host_of(request: &Request) -> Result<&str, Problem> {
    let target = request.uri().authority().map(|it| it.as_str());
    let mut given = request.headers().get_all(header::HOST).iter();
    let (first, second) = (given.next(), given.next());
    if second.is_some() {
        return Err(Problem::bad("the request has more than one Host header"));
    }
    let Some(host) = first else {
        return match request.version() {
            // Nobody had to name a host before.
            Version::HTTP_09 | Version::HTTP_10 => Ok(target.unwrap_or_default()),
            _ => Err(Problem::bad("the request has no Host header")),
        };
    };
    let host =
        host.to_str().map_err(|_| Problem::bad("the Host header is not a valid host name"))?;
    match target {
        Some(target) if !target.eq_ignore_ascii_case(host) => {
            Err(Problem::bad("the request's target and its Host header name different hosts"))
        }
        _ => Ok(host),
    }
}
