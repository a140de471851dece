//! Where objects are kept, as an operator writes it: a directory or a bucket.
//!
//! Invariant: a [`Location`] is complete and checked; opening it asks nothing
//! of the environment. Keys never show in debug output.

use std::fmt;
use std::path::PathBuf;

use super::path::ObjectPath;
use crate::{Error, Result};

/// The region named to servers that have none.
const REGION_DEFAULT: &str = "us-east-1";

/// How to reach an S3-compatible server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct S3Settings {
    /// The server's address; `None` means AWS itself. An address that begins
    /// with `http://` is the one way to allow a connection without TLS.
    pub endpoint: Option<String>,
    /// The region; `us-east-1` when `None`.
    pub region: Option<String>,
    /// Key id and secret; `None` means the role of this machine or container.
    pub keys: Option<(String, String)>,
}

impl S3Settings {
    pub(super) fn region(&self) -> &str {
        self.region.as_deref().unwrap_or(REGION_DEFAULT)
    }
}

impl fmt::Debug for S3Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("S3Settings")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("keys", &self.keys.as_ref().map(|_| "(hidden)"))
            .finish()
    }
}

/// Where objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Location {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A bucket, and the prefix of our objects in it (empty for the whole bucket).
    S3 {
        bucket: String,
        /// Ours begin with this and a slash; no slash at either end.
        prefix: String,
        /// How to reach the server.
        settings: S3Settings,
    },
}

impl Location {
    /// Reads `file:///dir`, a plain directory path, or `s3://bucket/prefix`.
    /// The settings matter only for the last.
    pub fn parse(text: &str, settings: &S3Settings) -> Result<Location> {
        let refuse = |reason: &str| {
            Err(Error::Object {
                path: text.to_owned(),
                reason: format!("not a location: {reason}"),
            })
        };
        if let Some(rest) = text.strip_prefix("s3://") {
            return bucket_location(text, rest, settings);
        }
        if text.starts_with("file:") {
            let parsed = url::Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            return match parsed {
                Some(directory) => Ok(Location::Directory(directory)),
                None => refuse("file:// takes an absolute path of this machine"),
            };
        }
        if text.is_empty() || text.contains('\0') {
            return refuse("a directory needs a name");
        }
        if text.contains("://") {
            return refuse("known are file:///directory, s3://bucket/prefix and a plain path");
        }
        Ok(Location::Directory(PathBuf::from(text)))
    }
}

fn bucket_location(text: &str, rest: &str, settings: &S3Settings) -> Result<Location> {
    let refuse = |reason: &str| {
        Err(Error::Object { path: text.to_owned(), reason: format!("not a location: {reason}") })
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    let allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
    };
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(allowed) {
        return refuse("a bucket's name has 3 to 63 lower-case letters, digits, dots or hyphens");
    }
    if !prefix.is_empty() {
        ObjectPath::parse(prefix)?;
    }
    if let Some(endpoint) = &settings.endpoint {
        let http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
        if !http || url::Url::parse(endpoint).is_err() {
            return refuse("the endpoint must be an http:// or https:// address");
        }
    }
    Ok(Location::S3 {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        settings: settings.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Location> {
        Location::parse(text, &S3Settings::default())
    }

    #[test]
    fn directories_are_read_plain_or_as_file_urls() {
        let directory = |path: &str| Location::Directory(PathBuf::from(path));
        assert_eq!(parse("file:///var/a%20b").unwrap(), directory("/var/a b"));
        assert_eq!(parse("/var/data").unwrap(), directory("/var/data"));
        assert_eq!(parse("data/objects").unwrap(), directory("data/objects"));
    }

    #[test]
    fn buckets_are_read_with_and_without_prefix() {
        let bucket = |name: &str, prefix: &str| Location::S3 {
            bucket: name.into(),
            prefix: prefix.into(),
            settings: S3Settings::default(),
        };
        assert_eq!(parse("s3://crawl").unwrap(), bucket("crawl", ""));
        assert_eq!(parse("s3://crawl/a/b/").unwrap(), bucket("crawl", "a/b"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "s3://", "s3://a", "s3://Crawl/x", "s3://crawl/../x", "gs://bucket/x"] {
            assert!(parse(text).is_err(), "{text:?} must be refused");
        }
        let endpoint = Some("ftp://host".to_owned());
        let settings = S3Settings { endpoint, ..S3Settings::default() };
        assert!(Location::parse("s3://crawl", &settings).is_err());
    }

    #[test]
    fn a_secret_does_not_show_in_debug_output() {
        let keys = Some(("id".to_owned(), "hunter2".to_owned()));
        let settings = S3Settings { keys, ..S3Settings::default() };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
