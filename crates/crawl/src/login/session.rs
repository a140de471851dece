//! A session with a site: its cookies, as they go to and fro.
//!
//! Relies on cookie_store for what RFC 6265 says. Invariants: a cookie goes nowhere but
//! where its site may have it, and none is taken that would go to a whole public suffix;
//! no more is kept than the limits allow.

use crate::fetch::HeaderValue;
use cookie_store::{CookieStore, RawCookie};
use page::domain::SuffixList;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use store::tables::sessions::COOKIES_BYTES_MAX;
use url::Url;

/// Cookies of a session.
const COOKIES_MAX: usize = 200;
/// Bytes of one of them.
const COOKIE_BYTES_MAX: usize = 8 << 10;

/// A session with a site: its cookies, and whether it has proved good.
pub struct Session {
    /// How many logins there have been, this one included.
    pub number: i64,
    jar: Mutex<CookieStore>,
    /// Nothing has been had in it yet.
    is_unproven: AtomicBool,
}

impl Session {
    /// One that has just begun, or that is about to.
    pub fn new(number: i64) -> Session {
        let jar = Mutex::new(CookieStore::new());
        Session { number, jar, is_unproven: AtomicBool::new(true) }
    }

    /// One that was begun before. What cannot be read is an empty one, which the site will
    /// not know.
    pub fn restore(number: i64, cookies: &str) -> Session {
        let jar = cookie_store::serde::json::load_all(cookies.as_bytes());
        let jar = Mutex::new(jar.unwrap_or_default());
        Session { number, jar, is_unproven: AtomicBool::new(false) }
    }

    /// Its cookies as text.
    pub fn cookies(&self) -> Option<String> {
        let mut bytes = Vec::new();
        let jar = self.jar.lock().unwrap_or_else(PoisonError::into_inner);
        cookie_store::serde::json::save_incl_expired_and_nonpersistent(&jar, &mut bytes).ok()?;
        String::from_utf8(bytes).ok().filter(|text| text.len() <= COOKIES_BYTES_MAX)
    }

    /// What goes with a request.
    pub fn header(&self, url: &str) -> Option<HeaderValue> {
        let url = Url::parse(url).ok()?;
        let jar = self.jar.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs: Vec<String> =
            jar.get_request_values(&url).map(|(name, value)| format!("{name}={value}")).collect();
        let mut value = HeaderValue::from_str(&pairs.join("; ")).ok()?;
        value.set_sensitive(true);
        (!pairs.is_empty()).then_some(value)
    }

    /// Takes what an answer wants to be reminded of.
    pub fn take<'a>(
        &self,
        url: &str,
        cookies: impl Iterator<Item = &'a HeaderValue>,
        suffixes: &SuffixList,
    ) {
        let Ok(url) = Url::parse(url) else { return };
        let mut jar = self.jar.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = cookies.filter_map(|value| value.to_str().ok());
        for text in texts.filter(|text| text.len() <= COOKIE_BYTES_MAX) {
            let Ok(cookie) = RawCookie::parse(text.to_owned()) else { continue };
            let domain = cookie.domain().map(|it| it.trim_start_matches('.').to_lowercase());
            let is_too_wide = domain.is_some_and(|domain| {
                Some(domain.as_str()) != url.host_str()
                    && suffixes.registered_domain(&domain).is_none()
            });
            if !is_too_wide && jar.iter_any().count() < COOKIES_MAX {
                // A cookie that the site may not set is not set.
                let _ = jar.insert_raw(&cookie.into_owned(), &url);
            }
        }
    }

    /// A document was had in it.
    pub fn proves_good(&self) {
        self.is_unproven.store(false, Ordering::Relaxed);
    }

    /// Whether nothing was had in it since it began.
    pub fn is_unproven(&self) -> bool {
        self.is_unproven.load(Ordering::Relaxed)
    }
}

/// Without the cookies, which are secrets.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(session: &Session, url: &str, cookie: &str) {
        let value = HeaderValue::from_str(cookie).unwrap();
        session.take(url, [&value].into_iter(), SuffixList::bundled());
    }

    fn sent(session: &Session, url: &str) -> String {
        session.header(url).map_or_else(String::new, |it| it.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_go_where_their_site_may_have_them_and_nowhere_else() {
        let session = Session::new(1);
        take(&session, "https://a.shop.example/in", "id=1; Path=/; HttpOnly");
        take(&session, "https://a.shop.example/in", "deep=2; Path=/in/deep");
        take(&session, "https://a.shop.example/in", "all=3; Domain=shop.example; Secure; Path=/");
        take(&session, "https://a.shop.example/in", "theirs=4; Domain=other.example; Path=/");
        assert!(sent(&session, "https://a.shop.example/").contains("id=1"));
        assert!(!sent(&session, "https://a.shop.example/").contains("deep"));
        assert!(sent(&session, "https://a.shop.example/in/deep/x").contains("deep=2"));
        assert_eq!(sent(&session, "https://b.shop.example/"), "all=3");
        assert_eq!(sent(&session, "http://b.shop.example/"), "", "Secure");
        assert_eq!(sent(&session, "https://other.example/"), "");
    }

    #[test]
    fn no_cookie_is_taken_for_all_of_a_public_suffix() {
        let session = Session::new(1);
        take(&session, "https://a.co.uk/", "wide=1; Domain=co.uk; Path=/");
        take(&session, "https://a.co.uk/", "own=1; Domain=a.co.uk; Path=/");
        assert_eq!(sent(&session, "https://a.co.uk/"), "own=1");
        assert_eq!(sent(&session, "https://b.co.uk/"), "");
    }

    #[test]
    fn a_session_survives_storage_and_what_is_no_session_is_an_empty_one() {
        let session = Session::new(3);
        take(&session, "http://a.example/", "id=7; Path=/");
        let restored = Session::restore(3, &session.cookies().unwrap());
        assert_eq!(sent(&restored, "http://a.example/x"), "id=7");
        assert!(session.is_unproven() && !restored.is_unproven());
        assert_eq!(sent(&Session::restore(3, "nonsense"), "http://a.example/"), "");
    }

    #[test]
    fn no_site_fills_the_memory_with_cookies() {
        let session = Session::new(1);
        for n in 0..COOKIES_MAX + 20 {
            take(&session, "http://a.example/", &format!("c{n}=1"));
        }
        take(&session, "http://b.example/", &format!("long={}", "x".repeat(COOKIE_BYTES_MAX)));
        assert_eq!(sent(&session, "http://a.example/").split("; ").count(), COOKIES_MAX);
        assert_eq!(sent(&session, "http://b.example/"), "");
        assert!(session.cookies().unwrap().len() <= COOKIES_BYTES_MAX);
    }
}
