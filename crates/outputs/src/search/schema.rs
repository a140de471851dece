//! What the index has of a document: its fields, and a document as the index takes it.
//!
//! Invariants: a document has one key, which is that of its row; what is stored is enough
//! to show it, and to index it anew with other anchors. [`VERSION`] grows with every change
//! here, so that an index of another make is built anew.

use super::access;
use super::words::{ANALYSER, analyser};
use jiff::fmt::rfc2822::DateTimeParser;
use page::domain::SuffixList;
use page::facts::Facts;
use page::ids::DocHash;
use store::chunkfile::document::DocumentRecord;
use store::ids::{ChunkId, ConnectionId, Part};
use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, NumericOptions, STORED, STRING, Schema,
    TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{TantivyDocument, Term};

/// The version of all this.
pub const VERSION: u32 = 2;
/// The name of the field that says which connection a document is of.
pub const CONNECTION: &str = "connection";
/// Bytes of headings that are indexed.
const HEADINGS_BYTES_MAX: usize = 16 * 1024;

/// The fields of the index, as the library numbers them.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
// tidy: wide the fields of the index
pub struct Fields {
    pub schema: Schema,
    /// Connection and hash of the identifier.
    pub key: Field,
    /// The part, and the chunk its content is from.
    pub part: Field,
    pub chunk: Field,
    pub url: Field,
    /// Words of the URL.
    pub address: Field,
    /// The host, and the names above it.
    pub host: Field,
    pub domain: Field,
    pub title: Field,
    pub headings: Field,
    pub description: Field,
    pub body: Field,
    /// Words of links that lead to it.
    pub anchors: Field,
    pub language: Field,
    pub media: Field,
    /// When it was last modified, as far as is known, in milliseconds.
    pub date: Field,
    pub simhash: Field,
    /// In-links, as they were counted when it was indexed.
    pub links: Field,
    /// Where the link index has it.
    pub home: Field,
    pub target: Field,
    /// Who may see it: see [`access`].
    pub access: Field,
    /// The connection it is of. Fields are numbered in their order, and a shard of version 1
    /// answers until it is made anew; so this one comes last.
    pub connection: Field,
}

impl Default for Fields {
    fn default() -> Fields {
        let mut to = Schema::builder();
        let words = TextFieldIndexing::default()
            .set_tokenizer(ANALYSER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = TextOptions::default().set_indexing_options(words);
        let number = NumericOptions::default().set_fast();
        Fields {
            key: to.add_bytes_field("key", BytesOptions::default().set_indexed().set_stored()),
            part: to.add_u64_field("part", number.clone() | INDEXED | STORED),
            chunk: to.add_i64_field("chunk", number.clone() | STORED),
            url: to.add_text_field("url", STORED),
            address: to.add_text_field("address", text.clone()),
            host: to.add_text_field("host", STRING),
            domain: to.add_text_field("domain", STRING | FAST | STORED),
            title: to.add_text_field("title", text.clone() | STORED),
            headings: to.add_text_field("headings", text.clone() | STORED),
            description: to.add_text_field("description", STORED),
            body: to.add_text_field("body", text.clone() | STORED),
            anchors: to.add_text_field("anchors", text),
            language: to.add_text_field("language", STRING | FAST | STORED),
            media: to.add_text_field("media", STRING | FAST | STORED),
            date: to.add_i64_field("date", number.clone() | INDEXED | STORED),
            simhash: to.add_u64_field("simhash", number.clone() | STORED),
            links: to.add_u64_field("links", number.clone()),
            home: to.add_u64_field("home", number),
            target: to.add_bytes_field("target", BytesOptions::default().set_fast()),
            access: to.add_text_field("access", STRING | STORED),
            connection: to.add_i64_field(CONNECTION, INDEXED),
            schema: to.build(),
        }
    }
}

/// The analysers that the schema names.
pub fn analysers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(ANALYSER, analyser());
    manager
}

/// The key of a document: the connection it is of, and the hash of its identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct DocumentKey {
    pub connection: ConnectionId,
    pub hash: DocHash,
}

impl DocumentKey {
    /// As the index has it.
    pub fn bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.connection.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.hash.0);
        bytes
    }

    /// From what the index has.
    pub fn parse(bytes: &[u8]) -> Option<DocumentKey> {
        let connection = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
        let hash = DocHash(bytes.get(8..)?.try_into().ok()?);
        Some(DocumentKey { connection: ConnectionId(connection), hash })
    }

    /// The term by which the index finds the document.
    pub fn term(self, fields: &Fields) -> Term {
        Term::from_field_bytes(fields.key, &self.bytes())
    }
}

/// What others say of a document: the words of links to it, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AnchorText {
    /// The number of in-links.
    pub links: u64,
    pub anchors: Vec<String>,
    /// Where the link index has it, if it is a page of the web.
    pub target: Option<(Part, DocHash)>,
}

/// A document for the index.
#[allow(missing_docs)]
pub struct IndexedDocument<'a> {
    pub key: DocumentKey,
    /// Its part, and the chunk its content is from.
    pub place: (Part, ChunkId),
    /// What the chunk says.
    pub record: &'a DocumentRecord,
    pub facts: &'a Facts,
    /// The words of links to it, and their number.
    pub anchor_text: &'a AnchorText,
}

impl Fields {
    /// A document as the index takes it.
    pub fn document(&self, entry: &IndexedDocument<'_>, list: &SuffixList) -> TantivyDocument {
        let IndexedDocument { key, place: (part, chunk), record, facts, anchor_text } = entry;
        let mut to = TantivyDocument::default();
        to.add_bytes(self.key, &key.bytes());
        to.add_u64(self.part, part.0.unsigned_abs());
        to.add_i64(self.chunk, chunk.0);
        to.add_text(self.url, &record.docid);
        let host = host_of(&record.docid);
        if !host.is_empty() {
            to.add_text(self.domain, list.grouping_domain(host));
        }
        to.add_text(self.title, &facts.title);
        let mut headings = String::new();
        for heading in &facts.headings {
            if headings.len() + heading.text.len() > HEADINGS_BYTES_MAX {
                break;
            }
            headings.push_str(&heading.text);
            headings.push('\n');
        }
        to.add_text(self.headings, headings.trim_end());
        to.add_text(self.description, &facts.description);
        to.add_text(self.body, &facts.text);
        if let Some(language) = &facts.language {
            to.add_text(self.language, short_language(language));
        }
        to.add_text(self.media, short_media(&facts.media_type));
        to.add_i64(self.date, date_ms(record));
        to.add_u64(self.simhash, facts.simhash);
        for word in access::words(&record.access) {
            to.add_text(self.access, word);
        }
        self.complete(&mut to, *key, &record.docid, anchor_text);
        to
    }

    /// Adds what is not stored: what can be made of its key and its URL, and what others say.
    pub fn complete(
        &self,
        to: &mut TantivyDocument,
        key: DocumentKey,
        url: &str,
        anchor_text: &AnchorText,
    ) {
        to.add_i64(self.connection, key.connection.0);
        to.add_text(self.address, address(url));
        above(host_of(url)).for_each(|it| to.add_text(self.host, it));
        anchor_text.anchors.iter().for_each(|anchor| to.add_text(self.anchors, anchor));
        to.add_u64(self.links, anchor_text.links);
        if let Some((part, hash)) = anchor_text.target {
            to.add_u64(self.home, part.0.unsigned_abs());
            to.add_bytes(self.target, &hash.0);
        }
    }
}

/// The host of a URL, or nothing.
pub fn host_of(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return "" };
    if !scheme.starts_with("http") {
        return "";
    }
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// A host and the names above it: `a.b.example`, `b.example`, `example`.
fn above(host: &str) -> impl Iterator<Item = &str> {
    let first = Some(host).filter(|host| !host.is_empty());
    std::iter::successors(first, |name| name.split_once('.').map(|it| it.1))
}

/// What of a URL has words: everything behind its scheme, as people read it.
fn address(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned()
}

/// The language without its region: `pt` for `pt-BR`.
pub fn short_language(tag: &str) -> String {
    tag.split(['-', '_']).next().unwrap_or(tag).to_ascii_lowercase()
}

/// The kind of a document in one word, such as `html`, `pdf`, `text`.
pub fn short_media(media: &str) -> &str {
    let media = media.split(';').next().unwrap_or(media).trim();
    match media {
        "text/html" | "application/xhtml+xml" => "html",
        "text/plain" => "text",
        "application/pdf" => "pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/vnd.oasis.opendocument.text" => "odt",
        "application/epub+zip" => "epub",
        other => other.rsplit_once('/').map_or(other, |(_, kind)| kind),
    }
}

/// When a document was last modified: as its server says, if that is not in the future, or
/// when it was fetched.
fn date_ms(record: &DocumentRecord) -> i64 {
    let Some(fetch) = &record.fetch else { return 0 };
    let modified = fetch.last_modified.as_deref();
    let modified = modified.and_then(|text| DateTimeParser::new().parse_timestamp(text).ok());
    let modified =
        modified.map(jiff::Timestamp::as_millisecond).filter(|ms| *ms <= fetch.fetched_ms);
    modified.unwrap_or(fetch.fetched_ms)
}
