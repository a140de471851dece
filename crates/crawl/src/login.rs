//! Logging in: which answers of a site ask for it, and what is done then.
//!
//! A connection says which documents need a session, and how the pages on the way to one
//! are recognised: by a form, a link, a redirect or their content. [`sequence`] walks that
//! way, [`session`] is what comes of it. Pure but for those two. Invariants: a password is
//! sent only to the origin of a page that the connection has named; whatever the pages
//! say, a walk ends.

pub mod sequence;
pub mod session;

use crate::fetch::{Fetched, HeaderValue, Outcome};
use bytes::Bytes;
use page::html::{self, Input};
use page::url::{Policy, Resolver, origin_of};
use page::{charset, fingerprint, forms, sniff};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Bytes a compiled expression may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Pages that a login may know.
const PAGES_MAX: usize = 50;
/// Bytes of a page that are looked at.
const LOOKED_BYTES_MAX: usize = 1 << 20;
/// How expressions must begin that say where a password goes.
const WHOLE: [&str; 2] = ["^http", "^(?i)http"];

/// A name and a password that a site asks for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct BasicConfig {
    /// Which URLs they are sent to.
    pub urls: String,
    pub user: String,
    pub password: Option<String>,
}

/// How a session is begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct LoginConfig {
    /// Which documents need one.
    pub urls: String,
    /// The pages on the way, each as `KIND URLS MATCH [TARGET]`.
    pub pages: Vec<String>,
    /// What is filled into forms, each as `NAME=VALUE`.
    pub fields: Vec<String>,
    /// The field that takes the password.
    pub password_field: String,
    pub password: Option<String>,
}

/// Credentials that go with every request to some URLs.
pub struct Basic {
    urls: Regex,
    value: HeaderValue,
}

impl Basic {
    /// Compiles what a connection says; nothing if it says nothing.
    pub fn new(config: &BasicConfig) -> Result<Option<Basic>, String> {
        if config.urls.is_empty() && config.user.is_empty() {
            return Ok(None);
        }
        let urls = whole("basic.urls", &config.urls)?;
        if config.user.is_empty() || config.user.contains(':') {
            return Err("basic.user: a name without a colon is needed".into());
        }
        let pair = format!("{}:{}", config.user, config.password.as_deref().unwrap_or_default());
        let text = format!("Basic {}", data_encoding::BASE64.encode(pair.as_bytes()));
        let mut value = HeaderValue::from_str(&text).map_err(|error| error.to_string())?;
        value.set_sensitive(true);
        Ok(Some(Basic { urls, value }))
    }

    /// The header for a URL, if it is one of those.
    pub fn header(&self, url: &str) -> Option<&HeaderValue> {
        self.urls.is_match(url).then_some(&self.value)
    }
}

/// How a page on the way is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoginPageKind {
    Form,
    Link,
    Redirect,
    Content,
}

/// A page on the way.
struct LoginPage {
    kind: LoginPageKind,
    urls: Regex,
    matches: Regex,
    /// Where it leads, if not where it says itself.
    target: Option<String>,
}

/// The login of a connection, with its expressions compiled.
pub struct Login {
    urls: Regex,
    pages: Vec<LoginPage>,
    fields: Vec<(String, String)>,
    /// A hash of all that was said.
    pub hash: String,
}

/// What is done on the way.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginStep {
    /// Which page it follows from.
    page: usize,
    /// What is asked for.
    pub url: String,
    /// What is posted there.
    pub form: Option<Bytes>,
    is_form: bool,
}

impl Login {
    /// Compiles what a connection says; nothing if it says nothing.
    pub fn new(config: &LoginConfig) -> Result<Option<Login>, String> {
        if *config == LoginConfig::default() {
            return Ok(None);
        }
        let urls = expression("login.urls", &config.urls)?;
        if config.urls.is_empty() || config.pages.is_empty() || config.pages.len() > PAGES_MAX {
            return Err(format!(
                "login.urls and login.pages belong together: the documents that need a session, \
                 and 1 to {PAGES_MAX} pages on the way to one"
            ));
        }
        let pages: Result<Vec<LoginPage>, String> =
            config.pages.iter().map(|text| LoginPage::parse(text)).collect();
        let mut fields = Vec::new();
        for text in &config.fields {
            let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) =
                pair.ok_or_else(|| format!("login.fields: {text:?} is not NAME=VALUE"))?;
            fields.push((name.to_owned(), value.to_owned()));
        }
        match (&config.password, config.password_field.as_str()) {
            (Some(_), "") => {
                return Err("login.password_field: name the form field for the password".into());
            }
            (Some(password), field) => fields.push((field.to_owned(), password.clone())),
            (None, "") => {}
            (None, _) => {
                return Err("login.password: give the password for login.password_field".into());
            }
        }
        let text = serde_json::to_string(config).map_err(|error| error.to_string())?;
        let hash = fingerprint::content_hash(text.as_bytes());
        let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(Login { urls, pages: pages?, fields, hash }))
    }

    /// Whether a document needs a session.
    pub fn guards(&self, url: &str) -> bool {
        self.urls.is_match(url)
    }

    /// Whether an answer to a document asks for a login.
    pub fn asks(&self, url: &str, answer: &Outcome) -> bool {
        self.next(url, answer).is_some()
    }

    /// What an answer leads to, if it is a page on the way.
    fn next(&self, url: &str, answer: &Outcome) -> Option<LoginStep> {
        let mut shown: Option<PageExcerpt> = None;
        let pages = self.pages.iter().enumerate().filter(|(_, page)| page.urls.is_match(url));
        for (number, page) in pages {
            let found = match (page.kind, answer) {
                (LoginPageKind::Redirect, Outcome::Redirect(redirect)) => {
                    page.matches.is_match(&redirect.to).then(|| (redirect.to.clone(), None))
                }
                (LoginPageKind::Redirect, _) => None,
                (kind, Outcome::Body(body)) => {
                    let shown = shown.get_or_insert_with(|| PageExcerpt::of(body));
                    self.found_in(page, kind, url, shown)
                }
                _ => None,
            };
            if let Some((target, form)) = found {
                let is_form = page.kind == LoginPageKind::Form;
                return Some(LoginStep { page: number, url: target, form, is_form });
            }
        }
        None
    }

    fn found_in(
        &self,
        page: &LoginPage,
        kind: LoginPageKind,
        url: &str,
        shown: &PageExcerpt,
    ) -> Option<(String, Option<Bytes>)> {
        let target = || page.target.clone();
        match kind {
            LoginPageKind::Content => {
                page.matches.is_match(&shown.text).then(|| Some((target()?, None))).flatten()
            }
            LoginPageKind::Link => {
                let links =
                    html::links_only(&Input::new(shown.text.as_bytes(), url, &Policy::NOTHING));
                let found = links.into_iter().find(|link| page.matches.is_match(&link.url))?;
                Some((target().unwrap_or(found.url), None))
            }
            LoginPageKind::Form => {
                let all = forms::forms(&shown.text);
                let form = all.into_iter().find(|form| {
                    page.matches.is_match(&form.name) || page.matches.is_match(&form.action)
                })?;
                self.submitted(page, url, form)
            }
            LoginPageKind::Redirect => None,
        }
    }

    /// A form as it is sent: filled in, to where it says, or where the connection says.
    fn submitted(
        &self,
        page: &LoginPage,
        url: &str,
        form: forms::Form,
    ) -> Option<(String, Option<Bytes>)> {
        let target = match &page.target {
            Some(target) => target.clone(),
            None => {
                let mut base = Resolver::new(url, &Policy::NOTHING).ok()?;
                let action = if form.action.trim().is_empty() { url } else { &form.action };
                let target = base.resolve(action).ok()?.to_owned();
                // A page must not send a password elsewhere, whatever it says.
                (origin_of(&target) == origin_of(url)).then_some(target)?
            }
        };
        let mut fields = form.fields;
        for (name, value) in &self.fields {
            fields.retain(|field| field.0 != *name);
            fields.push((name.clone(), value.clone()));
        }
        let text: String =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        match form.is_post {
            true => Some((target, Some(Bytes::from(text)))),
            false => {
                let before = target.split(['?', '#']).next().unwrap_or(&target);
                Some((format!("{before}?{text}"), None))
            }
        }
    }
}

impl LoginPage {
    fn parse(text: &str) -> Result<LoginPage, String> {
        let error = |why: &str| format!("login.pages: {text:?} {why}");
        let mut words = text.split_whitespace();
        let kind = match words.next() {
            Some("form") => LoginPageKind::Form,
            Some("link") => LoginPageKind::Link,
            Some("redirect") => LoginPageKind::Redirect,
            Some("content") => LoginPageKind::Content,
            _ => return Err(error("does not begin with form, link, redirect or content")),
        };
        let (Some(urls), Some(matches)) = (words.next(), words.next()) else {
            return Err(error("is not KIND URLS MATCH [TARGET]"));
        };
        let target = words.next().map(|target| page::url::canonical(target, &Policy::NOTHING));
        let target =
            target.transpose().map_err(|why| error(&format!("has an invalid target: {why}")))?;
        if words.next().is_some() {
            return Err(error("has more than four words; write \\s for a space in MATCH"));
        }
        if kind == LoginPageKind::Content && target.is_none() {
            return Err(error("needs a target: its content does not say where to go"));
        }
        let urls = match kind {
            LoginPageKind::Form => whole("login.pages", urls),
            _ => expression("login.pages", urls),
        };
        Ok(LoginPage { kind, urls: urls?, matches: expression("login.pages", matches)?, target })
    }
}

/// The beginning of a page, as text.
struct PageExcerpt {
    text: String,
}

impl PageExcerpt {
    fn of(body: &Fetched) -> PageExcerpt {
        let content_type = body.header("content-type");
        let bytes = &body.body[..body.body.len().min(LOOKED_BYTES_MAX)];
        let media = sniff::media_of(content_type, false, bytes);
        let text = match media.kind {
            sniff::ContentKind::Html | sniff::ContentKind::Text | sniff::ContentKind::Xml => {
                charset::decode(bytes, charset::decide(bytes, content_type).encoding).into_owned()
            }
            _ => String::new(),
        };
        PageExcerpt { text }
    }
}

fn expression(name: &str, text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| format!("{name}: {text:?} is not a valid regular expression: {error}"))
}

/// An expression that says where a password goes, and so names the site from the front.
fn whole(name: &str, text: &str) -> Result<Regex, String> {
    if !WHOLE.iter().any(|begin| text.starts_with(begin)) {
        return Err(format!(
            "{name}: {text:?} must begin with ^http, so that no other site can be meant: \
             a password goes there"
        ));
    }
    expression(name, text)
}

#[cfg(test)]
mod tests;
