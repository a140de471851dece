//! What the index is told: pages as they are now, pages that are gone, pages seen again.
//!
//! Invariant: a batch may be told again; what is older than what is known changes nothing.

use super::codec::{self, ByteReader};
use super::pages::{Page, PageLink};
use page::outlinks::OutLink;
use store::Result;
use store::ids::{CommitNumber, Part};

/// Changes that are applied together, and how far they bring their origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeBatch {
    /// In the order they happened.
    pub changes: Vec<PageChange>,
    /// Written with the effect.
    pub marks: Vec<Mark>,
}

/// How far an origin of changes has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mark {
    /// The crawl's commits of a part.
    Cursor {
        part: Part,
        /// The last commit.
        seq: CommitNumber,
    },
    /// A file that is loaded.
    File {
        /// Its name in the index.
        key: Vec<u8>,
        /// How far it is.
        value: Vec<u8>,
    },
}

impl Mark {
    /// Whether it is about this part.
    pub fn is_of(&self, at: Part) -> bool {
        matches!(self, Mark::Cursor { part, .. } if *part == at)
    }
}

/// What happened to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PageChange {
    pub uri: String,
    /// When that was seen.
    pub date_ms: i64,
    /// The job that tells, or [`super::pages::LOADED`].
    pub job: i64,
    /// Whether the changes of this job come in their order, whatever their dates say: a
    /// clock may go back, a crawl does not.
    pub in_order: bool,
    pub what: What,
}

/// What became of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It is there, and says this.
    Page(Box<PageContent>),
    /// It is not there any more, and why.
    Gone(String),
    /// It was asked for and is not there, whether or not it ever was.
    Missing {
        /// The status of the answer.
        status: u16,
    },
    /// It was looked at, and is the same.
    Seen,
}

/// What a page says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PageContent {
    /// With which status; 0 if nobody knows.
    pub status: u16,
    pub title: String,
    /// The server's name for itself.
    pub server: String,
    /// Its links by URI, each once.
    pub links: Vec<OutLink>,
}

const PAGE: u8 = 0;
const GONE: u8 = 1;
const SEEN: u8 = 2;
const MISSING: u8 = 3;
const IN_ORDER: u8 = 4;

impl ChangeBatch {
    /// All of it as bytes: a batch that is under way is kept so.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        codec::put_number(&mut out, self.marks.len() as u64);
        for mark in &self.marks {
            match mark {
                Mark::Cursor { part, seq } => {
                    out.push(0);
                    codec::put_signed(&mut out, part.0);
                    codec::put_signed(&mut out, seq.0);
                }
                Mark::File { key, value } => {
                    out.push(1);
                    for bytes in [key, value] {
                        codec::put_number(&mut out, bytes.len() as u64);
                        out.extend_from_slice(bytes);
                    }
                }
            }
        }
        codec::put_number(&mut out, self.changes.len() as u64);
        for change in &self.changes {
            change.encode(&mut out);
        }
        out
    }

    /// Reads what was kept.
    pub fn decode(bytes: &[u8]) -> Result<ChangeBatch> {
        let mut reader = ByteReader::new("a pending batch", bytes);
        let mut batch = ChangeBatch::default();
        for _ in 0..reader.count()? {
            batch.marks.push(match reader.byte()? {
                0 => Mark::Cursor {
                    part: Part(reader.signed()?),
                    seq: CommitNumber(reader.signed()?),
                },
                _ => {
                    let key = reader.piece()?.to_vec();
                    Mark::File { key, value: reader.piece()?.to_vec() }
                }
            });
        }
        for _ in 0..reader.count()? {
            batch.changes.push(PageChange::decode(&mut reader)?);
        }
        Ok(batch)
    }
}

impl PageChange {
    /// A change is written as the page that it makes.
    fn encode(&self, out: &mut Vec<u8>) {
        let mut page = Page {
            uri: self.uri.clone(),
            date_ms: self.date_ms,
            first_ms: self.date_ms,
            reported_by: self.job,
            ..Page::default()
        };
        let kind = match &self.what {
            What::Seen => SEEN,
            What::Gone(why) => {
                page.gone = why.clone();
                GONE
            }
            What::Missing { status } => {
                page.status = *status;
                MISSING
            }
            What::Page(content) => {
                let PageContent { status, title, server, links } = &**content;
                (page.status, page.title, page.server) = (*status, title.clone(), server.clone());
                page.links = links.iter().map(|link| PageLink::new(link.clone(), 0)).collect();
                PAGE
            }
        };
        out.push(kind | if self.in_order { IN_ORDER } else { 0 });
        let bytes = page.encode();
        codec::put_number(out, bytes.len() as u64);
        out.extend_from_slice(&bytes);
    }

    fn decode(reader: &mut ByteReader<'_>) -> Result<PageChange> {
        let kind = reader.byte()?;
        let page = Page::decode(reader.piece()?)?;
        let what = match kind & !IN_ORDER {
            SEEN => What::Seen,
            GONE => What::Gone(page.gone),
            MISSING => What::Missing { status: page.status },
            _ => What::Page(Box::new(PageContent {
                status: page.status,
                title: page.title,
                server: page.server,
                links: page.links.into_iter().map(PageLink::into_link).collect(),
            })),
        };
        let (uri, date_ms, job) = (page.uri, page.date_ms, page.reported_by);
        Ok(PageChange { uri, date_ms, job, in_order: kind & IN_ORDER != 0, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::facts::{LinkKind, Rel};

    #[test]
    fn a_batch_is_read_as_it_was_kept() {
        let link = |uri: &str| OutLink {
            uri: uri.into(),
            anchor: "x".into(),
            kind: LinkKind::Area,
            rel: Rel::NOFOLLOW,
        };
        let change =
            |what| PageChange { uri: "u".into(), date_ms: 7, job: 3, in_order: true, what };
        let content = PageContent {
            status: 200,
            title: "T".into(),
            server: "s".into(),
            links: vec![link("a"), link("b")],
        };
        let batch = ChangeBatch {
            changes: vec![
                change(What::Page(Box::new(content))),
                change(What::Gone("robots".into())),
                change(What::Missing { status: 404 }),
                PageChange { in_order: false, ..change(What::Seen) },
            ],
            marks: vec![
                Mark::Cursor { part: Part(3), seq: CommitNumber(9) },
                Mark::File { key: vec![1], value: vec![2, 3] },
            ],
        };
        let bytes = batch.encode();
        assert_eq!(ChangeBatch::decode(&bytes).unwrap(), batch);
        assert!((0..bytes.len()).all(|end| ChangeBatch::decode(&bytes[..end]).is_err()));
    }
}
