//! What a record of a file means for the link index, by the policy that is asked for.
//!
//! Pure. The status of an answer decides whether its page is there; its links are those the
//! policy counts. Invariants: what failed, and what tells of no answer, changes nothing; a
//! page that is not there any more, or has no link left that Webindex would keep, is a
//! change of its own, so that its old links go.

use super::source::SourceItem;
use ::crawl::connectors::warc::archive::stream::{self, ArchivedPage, Tells};
use outputs::links::{PageChange, PageContent, What, pages};
use page::domain::SuffixList;
use page::outlinks::{self, LinkPolicy, OutLink};
use page::wat::{self, RecordStatus};
use page::webindex::{self, GivenPage, WebindexPage};
use store::chunkfile::warc::Record;

/// The status of a page that was there.
const OK: u16 = 200;
/// Why a page is gone of which Webindex would have kept nothing.
const NO_LINKS: &str = "no links";

/// By which rules records are judged.
#[derive(Clone, Copy)]
pub struct ConversionRules<'a> {
    pub policy: LinkPolicy,
    pub list: &'a SuffixList,
    /// Whether metadata records are extracts, whatever they declare.
    pub is_wat: bool,
}

/// What a record means.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordMeaning {
    /// Nothing for the index.
    Nothing,
    /// It should mean something, and cannot be read.
    Unreadable,
    Change(Box<PageChange>),
}

impl ConversionRules<'_> {
    /// Judges what was found in a file.
    pub fn judge(&self, item: &SourceItem) -> RecordMeaning {
        match (item, self.policy) {
            (SourceItem::LongLine, _) => RecordMeaning::Unreadable,
            (SourceItem::Line(line), LinkPolicy::Webindex) => self.original_line(line),
            (SourceItem::Line(line), _) => self.given_line(line),
            (SourceItem::Record(record), LinkPolicy::Webindex) if record.kind() == "metadata" => {
                self.original_extract(record)
            }
            (SourceItem::Record(record), _) => self.record(record),
        }
    }

    fn original_line(&self, line: &[u8]) -> RecordMeaning {
        match webindex::from_json(line, self.list) {
            None => RecordMeaning::Unreadable,
            Some(page) if page.links.is_empty() => gone(&page, NO_LINKS),
            Some(page) => original_page(page, 0),
        }
    }

    fn given_line(&self, line: &[u8]) -> RecordMeaning {
        let Some(page) = webindex::given(line) else { return RecordMeaning::Unreadable };
        let GivenPage { url, crawl_date, server, title, links } = page;
        let Some(page) = outlinks::of(&url, &links, self.policy, self.list) else {
            return RecordMeaning::Unreadable;
        };
        let what = content(0, title.unwrap_or_default(), server.unwrap_or_default(), page.links);
        change(page.uri, date_ms(crawl_date.as_deref()), what)
    }

    /// A record of a WAT archive, as Webindex read it: it did not look at the status.
    /// Only where it would have kept nothing the status says whether that means something.
    fn original_extract(&self, record: &Record) -> RecordMeaning {
        let Some(target) = record.target_uri().filter(|_| stream::is_extract(record)) else {
            return RecordMeaning::Nothing;
        };
        let date = record.header("WARC-Date");
        let status = wat::record_status(&record.block);
        match webindex::from_wat(&record.block, target, date, self.list) {
            None if status == RecordStatus::Unreadable => RecordMeaning::Unreadable,
            None => RecordMeaning::Nothing,
            Some(page) if page.links.is_empty() => match status {
                RecordStatus::Answer(OK) => gone(&page, NO_LINKS),
                RecordStatus::Answer(status) => match stream::gone(status) {
                    Some(why) => gone(&page, why),
                    None => RecordMeaning::Nothing,
                },
                RecordStatus::NoAnswer | RecordStatus::Unreadable => RecordMeaning::Nothing,
            },
            Some(page) => match status {
                RecordStatus::Answer(status) => original_page(page, status),
                RecordStatus::NoAnswer | RecordStatus::Unreadable => original_page(page, 0),
            },
        }
    }

    fn record(&self, record: &Record) -> RecordMeaning {
        let date_ms = date_ms(record.header("WARC-Date"));
        match stream::record_kind(record, self.is_wat) {
            Tells::Nothing => RecordMeaning::Nothing,
            Tells::Unreadable => RecordMeaning::Unreadable,
            Tells::Gone { url, why } => match outlinks::of(&url, &[], self.policy, self.list) {
                None => RecordMeaning::Nothing,
                Some(page) => change(page.uri, date_ms, What::Gone(why.to_owned())),
            },
            Tells::Page(page) => self.page(*page, date_ms),
        }
    }

    fn page(&self, captured: ArchivedPage, date_ms: i64) -> RecordMeaning {
        let ArchivedPage { url, status, server, facts } = captured;
        let Some(page) = outlinks::of(&url, &facts.links, self.policy, self.list) else {
            return RecordMeaning::Nothing;
        };
        let is_nothing = self.policy == LinkPolicy::Webindex && page.links.is_empty();
        let what = match is_nothing {
            true => What::Gone(NO_LINKS.to_owned()),
            false => content(status, facts.title, server, page.links),
        };
        change(page.uri, date_ms, what)
    }
}

fn original_page(page: WebindexPage, status: u16) -> RecordMeaning {
    let (title, server) = (page.title.unwrap_or_default(), page.server.unwrap_or_default());
    let what = content(status, title, server, page.links);
    change(page.uri, date_ms(page.crawl_date.as_deref()), what)
}

fn gone(page: &WebindexPage, why: &str) -> RecordMeaning {
    let date_ms = date_ms(page.crawl_date.as_deref());
    change(page.uri.clone(), date_ms, What::Gone(why.to_owned()))
}

fn content(status: u16, title: String, server: String, links: Vec<OutLink>) -> What {
    What::Page(Box::new(PageContent { status, title, server, links }))
}

fn change(uri: String, date_ms: i64, what: What) -> RecordMeaning {
    RecordMeaning::Change(Box::new(PageChange {
        uri,
        date_ms,
        job: pages::LOADED,
        in_order: false,
        what,
    }))
}

/// When a page was captured. What has no date is older than all that has one.
fn date_ms(text: Option<&str>) -> i64 {
    text.and_then(webindex::date_ms).unwrap_or(0)
}

#[cfg(test)]
mod tests;
