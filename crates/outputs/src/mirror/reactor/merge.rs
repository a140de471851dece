//! Merging an x-file into the index of members: what must be made anew, and why.

use super::members::{ReactorMember, members, short};
use super::names::{AssetFile, NameTable};
use super::sheets::{Seed, sheets};
use super::{DIR, MEMBERS, Renamed, SHEETS, Step};
use crate::mirror::digest::Digest;
use crate::mirror::kind::Kind;
use crate::mirror::sealed::{self, read_record, seal, write_record};
use crate::mirror::sorter::{Record, Sorted, Sorter};
use crate::mirror::versions::{BUCKETS, Versions};
use crate::mirror::{Mirror, x_files};
use page::mirror::names::HashName;
use page::mirror::xfile::{Event, Operation};
use std::collections::{BTreeMap, HashMap};
use store::Result;

/// What follows from the members before and after.
pub(super) struct Merged {
    pub(super) names: NameTable,
    pub(super) renamed: Renamed,
    /// All style sheets.
    pub(super) sheets: Vec<Seed>,
    /// Pages that came or changed, by hash name.
    pub(super) changed_pages: Vec<HashName>,
    /// Files of requisites that a member does not have any more.
    pub(super) left_assets: Vec<AssetFile>,
}

/// What an x-file says of members, by hash name.
pub(super) fn changes(mirror: &Mirror, cursor: u64, number: u64) -> Result<Sorted> {
    let mut x_file = x_files::open_after(&mirror.disk, cursor, number)?;
    let mut sorter = Sorter::new(&mirror.disk);
    let failed = |error| x_files::failed(&mirror.disk, number, error);
    while let Some(event) = x_file.reader.next().map_err(failed)? {
        let Event::Open(node) = event else { continue };
        if node.operation == Operation::Keep {
            continue;
        }
        let member = ReactorMember::of(&node);
        sorter.push(node.hash_name.as_bytes().to_vec(), write_record(Vec::new(), &member))?;
    }
    sorter.finish()
}

/// Merges changes into the index, and notes what follows.
pub(super) fn merge(step: &Step<'_>, mut changes: Sorted) -> Result<Merged> {
    let disk = &step.mirror.disk;
    let old = Versions::open(disk, MEMBERS, step.before.step)?;
    let sheets_before = sheets(&Versions::open(disk, SHEETS, step.before.step)?)?;
    let names_before = sheets_before.iter().map(|sheet| (sheet.hash(), sheet.name)).collect();
    let mut notes = Notes {
        step,
        sheet_names: names_before,
        merged: Merged {
            names: NameTable::default(),
            renamed: Renamed::new(),
            sheets: Vec::new(),
            changed_pages: Vec::new(),
            left_assets: Vec::new(),
        },
    };
    let mut next = changes.next()?;
    for bucket in 0..BUCKETS {
        let before = members(&old, bucket)?;
        let mut after: BTreeMap<HashName, ReactorMember> =
            before.iter().map(|member| (member.hash(), member.clone())).collect();
        let of_bucket = |it: &mut Record| usize::from(it.key[0]) == bucket;
        while let Some(record) = next.take_if(of_bucket) {
            let change: Option<ReactorMember> = read_record(&record.value, "a node of an x-file")?;
            let hash = HashName::from_bytes(record.key.first_chunk().expect("keys are hash names"));
            match change {
                Some(member) => drop(after.insert(hash, member)),
                None => drop(after.remove(&hash)),
            }
            next = changes.next()?;
        }
        notes.compare(&before, &after)?;
        let after: Vec<ReactorMember> = after.into_values().collect();
        if after != before {
            let bytes = seal(sealed::Kind::ReactorMembers, &after);
            old.write(bucket, step.after.step, &bytes)?;
        }
    }
    Ok(notes.merged)
}

/// Notes what follows from members before and after.
struct Notes<'s, 'm> {
    step: &'s Step<'m>,
    /// What style sheets were called.
    sheet_names: HashMap<HashName, Digest>,
    merged: Merged,
}

impl Notes<'_, '_> {
    fn compare(
        &mut self,
        before: &[ReactorMember],
        after: &BTreeMap<HashName, ReactorMember>,
    ) -> Result<()> {
        let was: BTreeMap<HashName, &ReactorMember> =
            before.iter().map(|member| (member.hash(), member)).collect();
        for (hash, member) in after {
            self.is_there(*hash, was.get(hash).copied(), member)?;
        }
        for (hash, member) in was.iter().filter(|(hash, _)| !after.contains_key(hash)) {
            self.merged.renamed.insert(short(hash));
            self.leaves(*hash, member)?;
            self.step.mirror.disk.remove(format!("{DIR}/{}", hash.path("")))?;
        }
        Ok(())
    }

    /// Notes a member that is there now.
    fn is_there(
        &mut self,
        hash: HashName,
        before: Option<&ReactorMember>,
        after: &ReactorMember,
    ) -> Result<()> {
        let merged = &mut self.merged;
        merged.names.push(hash, after.kind, after.extension(), after.sha256);
        let is_same = before == Some(after);
        let names_differ = self.step.before.by.names != self.step.after.by.names;
        if after.kind == Kind::Sheet {
            merged.sheets.push(Seed { hash, member: after.clone() });
        }
        if is_same && !(names_differ && after.kind.is_named_by_url()) {
            return Ok(());
        }
        let is_renamed = match before {
            None => true,
            Some(before) => self.is_renamed(before, after),
        };
        if is_renamed {
            self.merged.renamed.insert(short(&hash));
            if let Some(before) = before {
                self.leaves(hash, before)?;
            }
        }
        if after.kind == Kind::Page {
            self.merged.changed_pages.push(hash);
            return Ok(());
        }
        self.shows(hash, after)
    }

    /// Whether others that refer to a member must say another name now. A style sheet's name is
    /// found out later.
    fn is_renamed(&self, before: &ReactorMember, after: &ReactorMember) -> bool {
        if before.kind != after.kind || before.extension() != after.extension() {
            return true;
        }
        match after.kind {
            Kind::Page | Kind::Document => {
                before.path(self.step.before.by.names) != after.path(self.step.after.by.names)
            }
            Kind::Asset => before.sha256 != after.sha256,
            Kind::Sheet => false,
        }
    }

    /// Has the file of a member go that has another name now, or none.
    fn leaves(&mut self, hash: HashName, before: &ReactorMember) -> Result<()> {
        if let Some(path) = before.path(self.step.before.by.names) {
            return self.step.goes(&path);
        }
        let name = match before.kind {
            Kind::Sheet => self.sheet_names.get(&hash).copied(),
            _ => Some(before.sha256),
        };
        let extension = before.extension();
        self.merged.left_assets.extend(name.map(|name| AssetFile { name, extension }));
        Ok(())
    }

    /// Shows a member that is shown as it came.
    fn shows(&self, hash: HashName, member: &ReactorMember) -> Result<()> {
        let path = match member.kind {
            Kind::Page | Kind::Sheet => return Ok(()),
            Kind::Document => member.path(self.step.after.by.names),
            Kind::Asset => {
                let extension = member.extension();
                Some(AssetFile { name: member.sha256, extension }.path())
            }
        };
        let disk = &self.step.mirror.disk;
        disk.link_blob(&member.sha256, format!("{DIR}/{}", hash.path("")))?;
        path.map_or(Ok(()), |path| self.step.shows(&path, &member.sha256))
    }
}
