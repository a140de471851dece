//! What can become of a URL in a crawl: the words that the demo tells its story in, and
//! that [`super::expectations`] foretells it in.

/// What became of a URL in one crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// New: outputs get it.
    Added,
    /// Its content is another.
    Updated,
    /// Its bytes are others, its text is not.
    Restyled,
    /// The server says that nothing changed (304).
    Kept,
    /// Sent whole and recognised: the bytes are the same.
    Same,
    /// Known, and missing now (404, 410).
    Removed,
    /// Known, and a redirect now.
    Moved,
    /// It could not be had, so what is known of it stays.
    Failing,
    /// A redirect that was never anything else.
    Redirect,
    /// A link to nothing.
    Missing,
    /// Read, but it asks not to be kept.
    Noindex,
    /// Forbidden by robots.txt: never asked for.
    Robots,
    /// Cut as endless: never asked for.
    Trap,
}

impl Fate {
    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Added => "added",
            Fate::Updated => "updated",
            Fate::Restyled => "restyled",
            Fate::Kept => "kept",
            Fate::Same => "same",
            Fate::Removed => "removed",
            Fate::Moved => "moved",
            Fate::Failing => "failing",
            Fate::Redirect => "redirect",
            Fate::Missing => "missing",
            Fate::Noindex => "noindex",
            Fate::Robots => "robots",
            Fate::Trap => "trap",
        }
    }

    /// What so many documents are, for people.
    pub fn words(self) -> &'static str {
        match self {
            Fate::Added => "added",
            Fate::Updated => "updated",
            Fate::Restyled => "updated in markup alone",
            Fate::Kept => "not modified (304)",
            Fate::Same => "fetched, the same bytes",
            Fate::Removed => "removed",
            Fate::Moved => "removed, being redirected",
            Fate::Failing => "unreachable and kept",
            Fate::Redirect => "redirected",
            Fate::Missing => "missing",
            Fate::Noindex => "noindex",
            Fate::Robots => "forbidden by robots.txt",
            Fate::Trap => "crawler trap",
        }
    }
}
