//! The kinds of links that lead to pages, by the names that people and programs use.

use clap::ValueEnum;
use page::facts::LinkKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of links that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LinkKindName {
    A,
    Area,
    Frame,
    Canonical,
    Redirect,
    Refresh,
    Alternate,
    Next,
    Prev,
    Feed,
}

impl LinkKindName {
    pub fn kind(self) -> LinkKind {
        match self {
            LinkKindName::A => LinkKind::A,
            LinkKindName::Area => LinkKind::Area,
            LinkKindName::Frame => LinkKind::Frame,
            LinkKindName::Canonical => LinkKind::Canonical,
            LinkKindName::Redirect => LinkKind::Redirect,
            LinkKindName::Refresh => LinkKind::Refresh,
            LinkKindName::Alternate => LinkKind::Alternate,
            LinkKindName::Next => LinkKind::Next,
            LinkKindName::Prev => LinkKind::Prev,
            LinkKindName::Feed => LinkKind::Feed,
        }
    }

    /// The name, as it is written on a command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LinkKindName::A => "a",
            LinkKindName::Area => "area",
            LinkKindName::Frame => "frame",
            LinkKindName::Canonical => "canonical",
            LinkKindName::Redirect => "redirect",
            LinkKindName::Refresh => "refresh",
            LinkKindName::Alternate => "alternate",
            LinkKindName::Next => "next",
            LinkKindName::Prev => "prev",
            LinkKindName::Feed => "feed",
        }
    }
}

/// The name of a kind; `other` for those that lead to no pages.
pub fn kind_name(kind: LinkKind) -> &'static str {
    let named = LinkKindName::value_variants().iter().find(|it| it.kind() == kind);
    named.map_or("other", |it| it.name())
}
