//! Style sheets: rewritten before pages, those first that others import.
//!
//! A style sheet is named by its bytes after rewriting, and these hold the names of what it
//! refers to. Style sheets that import each other in a circle are named by the digest of the
//! whole circle, in which each stands with its own references resolved but for those within.
//! Invariant: a name says all that the bytes depend on, so the same name is the same bytes.

mod circles;
#[cfg(test)]
mod tests;

use self::circles::circles;
use super::members::{ReactorMember, short};
use super::names::{AssetFile, NameTable};
use super::targets::Targets;
use super::{DIR, Renamed, SHEETS, Step};
use crate::mirror::digest::Digest;
use crate::mirror::kind::Extension;
use crate::mirror::sealed::{self, open, seal};
use crate::mirror::versions::Versions;
use page::mirror::names::HashName;
use page::mirror::rewrite::{Document, style_sheet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use store::Result;

/// All style sheets are in one file.
const BUCKET: usize = 0;
/// Where a style sheet is taken to lie: in no folder that a requisite lies in, so that what it
/// writes does not depend on its own name.
const FROM: &str = "assets/-/style.css";

/// A style sheet that is a member.
pub(super) struct Seed {
    pub(super) hash: HashName,
    pub(super) member: ReactorMember,
}

/// What has become of a style sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sheet {
    url: String,
    original: Digest,
    content_type: String,
    /// What its file is called by.
    pub(super) name: Digest,
    /// What is in its file.
    pub(super) output: Digest,
    references: Vec<[u8; 8]>,
}

impl Sheet {
    pub(super) fn hash(&self) -> HashName {
        HashName::of(&self.url)
    }

    fn is_of(&self, member: &ReactorMember) -> bool {
        self.original == member.sha256 && self.content_type == member.content_type()
    }
}

/// The style sheets as of a step.
pub(super) fn sheets(versions: &Versions<'_>) -> Result<Vec<Sheet>> {
    match versions.read(BUCKET)? {
        Some(file) => open(sealed::Kind::Sheets, &file.bytes, &file.path),
        None => Ok(Vec::new()),
    }
}

/// Makes all style sheets anew that changed or refer to something that did, and names them.
pub(super) fn make(
    step: &Step<'_>,
    seeds: Vec<Seed>,
    names: &mut NameTable,
    renamed: &mut Renamed,
    left: &mut Vec<AssetFile>,
) -> Result<()> {
    let versions = Versions::open(&step.mirror.disk, SHEETS, step.before.step)?;
    let before = sheets(&versions)?;
    let known: HashMap<HashName, &Sheet> = before.iter().map(|it| (it.hash(), it)).collect();
    let mut making = Making { step, names, renamed, left, made: BTreeMap::new() };
    let mut open = Vec::with_capacity(seeds.len());
    for seed in seeds {
        let known = known.get(&seed.hash).copied();
        open.push(making.read(seed, known)?);
    }
    // Dependencies come before what depends on them.
    for circle in circles(&links(&open)) {
        making.circle(&open, &circle)?;
    }
    let after: Vec<Sheet> = making.made.into_values().collect();
    if after != before {
        versions.write(BUCKET, step.after.step, &seal(sealed::Kind::Sheets, &after))?;
    }
    Ok(())
}

/// A style sheet whose references are known.
struct OpenSheet<'b> {
    seed: Seed,
    references: Vec<[u8; 8]>,
    before: Option<&'b Sheet>,
    is_changed: bool,
}

/// For each style sheet those that it refers to.
fn links(sheets: &[OpenSheet<'_>]) -> Vec<Vec<usize>> {
    let at: HashMap<u64, usize> =
        sheets.iter().enumerate().map(|(at, sheet)| (short(&sheet.seed.hash), at)).collect();
    let linked = |references: &Vec<[u8; 8]>| {
        references.iter().filter_map(|it| at.get(&u64::from_be_bytes(*it)).copied()).collect()
    };
    sheets.iter().map(|sheet| linked(&sheet.references)).collect()
}

struct Making<'s, 'm> {
    step: &'s Step<'m>,
    names: &'s mut NameTable,
    renamed: &'s mut Renamed,
    left: &'s mut Vec<AssetFile>,
    made: BTreeMap<HashName, Sheet>,
}

impl Making<'_, '_> {
    /// Finds out what a style sheet refers to, unless that is known.
    fn read<'b>(&self, seed: Seed, before: Option<&'b Sheet>) -> Result<OpenSheet<'b>> {
        let known = before.filter(|before| before.is_of(&seed.member));
        let references = match known {
            Some(known) => known.references.clone(),
            None => self.rewrite(&seed.member)?.references,
        };
        Ok(OpenSheet { seed, references, before, is_changed: known.is_none() })
    }

    /// A style sheet with its references resolved.
    fn rewrite(&self, member: &ReactorMember) -> Result<Rewritten> {
        let body = self.step.mirror.disk.blob(&member.sha256)?;
        let content_type = member.content_type();
        let document =
            Document { body: &body, url: &member.url, content_type: Some(&content_type) };
        let names = self.step.after.by.names;
        let mut targets = Targets::new(self.names, names, &member.url, FROM.to_owned());
        let bytes = style_sheet(&document, None, &mut |url, _| targets.of(url));
        Ok(Rewritten { bytes, references: targets.into_references() })
    }

    /// Makes the style sheets of a circle, or one that is in none.
    fn circle(&mut self, open: &[OpenSheet<'_>], circle: &[usize]) -> Result<()> {
        let is_renamed = |it: &[u8; 8]| self.renamed.contains(&u64::from_be_bytes(*it));
        let is_outdated = |sheet: &OpenSheet<'_>| {
            self.step.all || sheet.is_changed || sheet.references.iter().any(is_renamed)
        };
        if !circle.iter().any(|&at| is_outdated(&open[at])) {
            for &at in circle {
                let known = open[at].before.expect("a style sheet that has not changed is known");
                self.names.set(&open[at].seed.hash, known.name);
                self.made.insert(open[at].seed.hash, known.clone());
            }
            return Ok(());
        }
        let own = |sheet: &OpenSheet<'_>| {
            let own = short(&sheet.seed.hash).to_be_bytes();
            sheet.references.contains(&own)
        };
        match circle {
            [one] if !own(&open[*one]) => {
                let sheet = &open[*one];
                let bytes = self.rewrite(&sheet.seed.member)?.bytes;
                let name = Digest::of(&bytes);
                self.keep(sheet, name, &bytes)
            }
            _ => self.keep_circle(open, circle),
        }
    }

    fn keep_circle(&mut self, open: &[OpenSheet<'_>], circle: &[usize]) -> Result<()> {
        let mut sheets: Vec<&OpenSheet<'_>> = circle.iter().map(|&at| &open[at]).collect();
        sheets.sort_unstable_by_key(|sheet| sheet.seed.hash);
        for sheet in &sheets {
            // Something to call them by that does not depend on what they were called.
            self.names.set(&sheet.seed.hash, Digest::of(sheet.seed.hash.as_bytes()));
        }
        let mut whole = Vec::new();
        for sheet in &sheets {
            let bytes = self.rewrite(&sheet.seed.member)?.bytes;
            whole.extend_from_slice(sheet.seed.hash.as_bytes());
            whole.extend_from_slice(&Digest::of(&bytes).0);
        }
        let name = |hash: &HashName| Digest::of(&[&whole[..], hash.as_bytes()].concat());
        for sheet in &sheets {
            self.names.set(&sheet.seed.hash, name(&sheet.seed.hash));
        }
        for sheet in &sheets {
            let bytes = self.rewrite(&sheet.seed.member)?.bytes;
            self.keep(sheet, name(&sheet.seed.hash), &bytes)?;
        }
        Ok(())
    }

    /// Keeps and shows a style sheet under its name.
    fn keep(&mut self, sheet: &OpenSheet<'_>, name: Digest, bytes: &[u8]) -> Result<()> {
        let disk = &self.step.mirror.disk;
        let (hash, member) = (sheet.seed.hash, &sheet.seed.member);
        let output = disk.keep(bytes)?;
        let extension: Extension = member.extension();
        self.names.set(&hash, name);
        match sheet.before.map(|before| before.name) {
            Some(before) if before == name => {}
            before => {
                self.renamed.insert(short(&hash));
                self.left.extend(before.map(|name| AssetFile { name, extension }));
            }
        }
        self.step.shows(&AssetFile { name, extension }.path(), &output)?;
        disk.link_blob(&output, format!("{DIR}/{}", hash.path("")))?;
        let made = Sheet {
            url: member.url.clone(),
            original: member.sha256,
            content_type: member.content_type(),
            name,
            output,
            references: sheet.references.clone(),
        };
        self.made.insert(hash, made);
        Ok(())
    }
}

struct Rewritten {
    bytes: Vec<u8>,
    references: Vec<[u8; 8]>,
}
