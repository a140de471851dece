//! Records as facts files of format 1 have them: without requisites and without a role.
//!
//! Invariant: the fields stand here in the order in which that format wrote them, and never
//! change.

use crate::chunkfile::document::{
    Access, Body, Change, DocumentRecord, DocumentRole, Fetch, Field,
};
use page::facts::{Directives, Facts, Heading, Link, Truncated};
use page::ids::DocHash;
use serde::Deserialize;

/// A document of a chunk.
#[derive(Deserialize)]
pub(super) struct Record {
    dochash: [u8; 16],
    docid: String,
    job: i64,
    change: Change,
    fetch: Option<Fetch>,
    facts: Option<RecordFacts>,
    fields: Vec<Field>,
    access: Access,
    body: Body,
}

/// What was parsed.
#[derive(Deserialize)]
struct RecordFacts {
    media_type: String,
    charset: String,
    language: Option<String>,
    title: String,
    description: String,
    headings: Vec<Heading>,
    links: Vec<Link>,
    directives: Directives,
    canonical: Option<String>,
    text: String,
    content_hash: [u8; 16],
    text_hash: [u8; 16],
    simhash: u64,
    truncated: Cut,
}

/// What was cut because a limit was reached.
#[derive(Deserialize)]
struct Cut {
    links: bool,
    text: bool,
    headings: bool,
    parse: bool,
}

impl From<Record> for DocumentRecord {
    fn from(record: Record) -> DocumentRecord {
        let Record { dochash, docid, job, change, fetch, facts, fields, access, body } = record;
        DocumentRecord {
            dochash: DocHash(dochash),
            docid,
            job,
            change,
            fetch,
            facts: facts.map(Into::into),
            fields,
            access,
            body,
            role: DocumentRole::Page,
        }
    }
}

impl From<RecordFacts> for Facts {
    fn from(facts: RecordFacts) -> Facts {
        let Cut { links, text, headings, parse } = facts.truncated;
        Facts {
            media_type: facts.media_type,
            charset: facts.charset,
            language: facts.language,
            title: facts.title,
            description: facts.description,
            headings: facts.headings,
            links: facts.links,
            directives: facts.directives,
            canonical: facts.canonical,
            text: facts.text,
            content_hash: facts.content_hash,
            text_hash: facts.text_hash,
            simhash: facts.simhash,
            truncated: Truncated { links, text, headings, parse, ..Truncated::default() },
            ..Facts::default()
        }
    }
}
