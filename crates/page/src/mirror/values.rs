//! Attributes of x-files and directory indexes as what they are.
//!
//! Absent is not an error, wrong is: a reader that guessed would pass a mistake on.

use std::str::FromStr;

use super::digest::ContentDigest;
use super::xfile::{Content, NodeKind, Stored};
use super::xml::Attributes;

/// An attribute as what it is; absent is not an error, wrong is.
pub(super) fn parsed<T: FromStr>(attributes: &Attributes, name: &str) -> Result<Option<T>, String> {
    with(attributes, name, |text| text.parse().ok())
}

pub(super) fn with<T>(
    attributes: &Attributes,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(text) = attributes.get(name) else { return Ok(None) };
    parse(text).map(Some).ok_or_else(|| format!("{name} is {text:?}"))
}

pub(super) fn required<T>(name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{name} is missing"))
}

/// What a node is, if it says so.
pub(super) fn kind(attributes: &Attributes) -> Result<Option<NodeKind>, String> {
    with(attributes, "kind", NodeKind::parse)
}

/// What is known of a node's bytes.
pub(super) fn content(attributes: &Attributes) -> Result<Content, String> {
    if attributes.get("content") == Some("pending") {
        return Ok(Content::Pending);
    }
    let Some(sha256) = with(attributes, "content", ContentDigest::parse)? else {
        return Ok(Content::Unknown);
    };
    Ok(Content::Stored(Box::new(Stored {
        sha256,
        length: required("length", parsed(attributes, "length")?)?,
        media_type: required("mediaType", attributes.get("mediaType").map(str::to_owned))?,
        charset: attributes.get("charset").map(str::to_owned),
        status: parsed(attributes, "status")?,
        fetched_ms: parsed(attributes, "fetched")?,
    })))
}
