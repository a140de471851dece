//! The links of one page, made absolute and canonical.
//!
//! This is the hottest code of a crawl: a page has about a hundred links, half of
//! them repeat on it, and nearly all lead to the same host. So answers are
//! remembered per page, and `plain` resolves ordinary links by copying.
//!
//! Invariant: an answer depends on document URL, base, policy and href alone, never
//! on what was asked before. The memory is bounded whatever a page holds.

use ::url::Url;

use super::hash::quick_hash;
use super::plain::Base;
use super::{HREF_BYTES_MAX, Policy, URL_BYTES_MAX, UrlRefusal};
use super::{check_before_parsing, clean, parse, plain, trim, within_limit};

/// Remembered links at a time; a power of two. More than most pages have, and
/// forgetting one costs only resolving it again.
const MEMO_SLOTS: usize = 512;
/// Bytes of remembered hrefs and answers; beyond, all is forgotten.
const MEMO_BYTES_MAX: usize = 256 << 10;

/// Resolves the links of one page against its base.
#[derive(Debug)]
pub struct Resolver {
    policy: Policy,
    document: Url,
    base: Url,
    /// None if the base is such that every link must go the long way.
    plain: Option<Base>,
    has_base: bool,
    memo: Memo,
}

impl Resolver {
    /// A resolver for the page that was found at `document_url`.
    pub fn new(document_url: &str, policy: &Policy) -> Result<Resolver, UrlRefusal> {
        let trimmed = trim(document_url);
        check_before_parsing(trimmed)?;
        let document = parse(None, trimmed)?;
        let plain = Some(Base::new(&document, policy)?);
        let base = document.clone();
        Ok(Resolver { policy: *policy, document, base, plain, has_base: false, memo: Memo::new() })
    }

    /// Takes the `href` of a `<base>`. The first one counts, even if it is of no use
    /// (HTML: the page then keeps its own URL); all later ones are ignored.
    pub fn set_base(&mut self, href: &str) {
        if self.has_base {
            return;
        }
        self.has_base = true;
        let href = trim(href);
        if href.len() > HREF_BYTES_MAX {
            return;
        }
        let Ok(base) = parse(Some(&self.document), href) else { return };
        // HTML refuses these two as bases; any other scheme makes relative links
        // lead there, where we do not follow.
        if matches!(base.scheme(), "data" | "javascript") {
            return;
        }
        self.plain = Base::new(&base, &self.policy).ok();
        self.base = base;
        self.memo.forget();
    }

    /// The absolute, canonical URL that `href` leads to.
    pub fn resolve(&mut self, href: &str) -> Result<&str, UrlRefusal> {
        let href = trim(href);
        // What is too long to be a link is not worth remembering.
        if href.len() > HREF_BYTES_MAX {
            check_before_parsing(href)?;
        }
        let hash = quick_hash(href.as_bytes());
        if let Some(known) = self.memo.find(hash, href) {
            return self.memo.answer(known);
        }
        let start = self.memo.begin(href);
        let refused = self.write(start, href).err();
        let known = self.memo.remember(hash, start, HrefResult { href, refused });
        self.memo.answer(known)
    }

    /// Writes the answer to the end of the memo's text, from `start` on.
    fn write(&mut self, start: usize, href: &str) -> Result<(), UrlRefusal> {
        let out = &mut self.memo.text;
        let written = match &self.plain {
            Some(base) => base.resolve(out, href, &self.policy),
            None => plain::absolute(out, href, &self.policy),
        };
        if !written {
            check_before_parsing(href)?;
            clean::write(out, &parse(Some(&self.base), href)?, &self.policy)?;
        }
        within_limit(&out[start..]).inspect_err(|_| out.truncate(start))
    }
}

/// Answers by href: a table with two places per hash. A further href with the same
/// places takes the second over, so nothing a page does makes a search long; hrefs
/// made to collide only lose the benefit of being remembered.
#[derive(Debug)]
struct Memo {
    slots: Vec<CacheSlot>,
    /// Each href, followed by what it leads to.
    text: String,
}

#[derive(Debug, Clone, Copy)]
struct CacheSlot {
    hash: u32,
    start: u32,
    href_bytes: u16,
    url_bytes: u16,
    refused: Option<UrlRefusal>,
    used: bool,
}

/// An href and how it went.
struct HrefResult<'h> {
    href: &'h str,
    refused: Option<UrlRefusal>,
}

const EMPTY: CacheSlot =
    CacheSlot { hash: 0, start: 0, href_bytes: 0, url_bytes: 0, refused: None, used: false };

// The narrow fields of a slot hold every length and position there can be.
const _: () = assert!(HREF_BYTES_MAX <= u16::MAX as usize && URL_BYTES_MAX <= HREF_BYTES_MAX);
const _: () = assert!(MEMO_BYTES_MAX + HREF_BYTES_MAX < u32::MAX as usize);

impl Memo {
    fn new() -> Memo {
        Memo { slots: vec![EMPTY; MEMO_SLOTS], text: String::with_capacity(4_096) }
    }

    fn forget(&mut self) {
        self.slots.fill(EMPTY);
        self.text.clear();
    }

    fn find(&self, hash: u32, href: &str) -> Option<CacheSlot> {
        let is_it = |slot: &CacheSlot| {
            let start = slot.start as usize;
            let known = || &self.text[start..start + usize::from(slot.href_bytes)];
            slot.used && slot.hash == hash && known() == href
        };
        places(hash).map(|place| self.slots[place]).into_iter().find(is_it)
    }

    /// Makes room and writes the href; returns where its answer begins.
    fn begin(&mut self, href: &str) -> usize {
        if self.text.len() > MEMO_BYTES_MAX {
            self.forget();
        }
        self.text.push_str(href);
        self.text.len()
    }

    /// Keeps the answer that was written from `answer_start` on, after its href.
    fn remember(&mut self, hash: u32, answer_start: usize, result: HrefResult) -> CacheSlot {
        let narrow = "lengths and positions are bounded by constants that fit";
        let slot = CacheSlot {
            hash,
            start: u32::try_from(answer_start - result.href.len()).expect(narrow),
            href_bytes: u16::try_from(result.href.len()).expect(narrow),
            url_bytes: u16::try_from(self.text.len() - answer_start).expect(narrow),
            refused: result.refused,
            used: true,
        };
        let [first, second] = places(hash);
        let place = if self.slots[first].used { second } else { first };
        self.slots[place] = slot;
        slot
    }

    fn answer(&self, slot: CacheSlot) -> Result<&str, UrlRefusal> {
        let start = slot.start as usize + usize::from(slot.href_bytes);
        match slot.refused {
            Some(refused) => Err(refused),
            None => Ok(&self.text[start..start + usize::from(slot.url_bytes)]),
        }
    }
}

fn places(hash: u32) -> [usize; 2] {
    let first = hash as usize % MEMO_SLOTS;
    [first, first ^ 1]
}
