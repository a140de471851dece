//! The one clock. Times are milliseconds since 1970 and come in as arguments
//! everywhere else, so that a test can say what time it is.

/// Milliseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "this is the one clock that the lint points to")]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the machine's clock is after 1970");
    i64::try_from(since.as_millis()).expect("milliseconds fit 63 bits for 292 million years")
}
