//! What the lists of the link index have in common: which page of one is asked for, how to
//! go on and back, and the whole of it as comma-separated values.
//!
//! Invariant: one page is in memory at a time; with the longest URLs it fits through a
//! socket.

use crate::cli::csv;
use crate::verbs::paging::{LINK_LIST_LIMIT, LIST_LIMIT_MAX, LinkListPage};
use anyhow::ensure;
use clap::Args as ClapArgs;
use outputs::links::paging::Listing;
use std::io::Write;

/// The page of a list, as it is written.
#[derive(ClapArgs, Clone, Default)]
pub struct Flags {
    /// Number of entries to list [default: 25, or all with --csv]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Cursor of the next or previous page, from an earlier answer
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Write CSV, with all entries
    #[arg(long)]
    pub csv: bool,
}

impl Flags {
    /// The page that is asked for first.
    pub fn page(&self, json: bool) -> anyhow::Result<LinkListPage> {
        ensure!(!(self.csv && json), "give either --json or --csv, not both");
        let limit = match self.limit {
            None if self.csv => LIST_LIMIT_MAX,
            Some(limit) if self.csv => limit.min(LIST_LIMIT_MAX),
            limit => limit.unwrap_or(LINK_LIST_LIMIT),
        };
        ensure!(
            limit <= LIST_LIMIT_MAX,
            "--limit is at most {LIST_LIMIT_MAX}, not {limit}; get all entries with --csv, or \
             page by page with --cursor"
        );
        Ok(LinkListPage { limit, cursor: self.cursor.clone() })
    }

    /// The lines that say how to go on and back from a page; `command` is the one that
    /// asked, without its cursor.
    pub fn ways<T>(&self, command: &str, listing: &Listing<T>) -> Vec<String> {
        let limit = self.limit.map_or(String::new(), |limit| format!(" --limit {limit}"));
        let way = |word: &str, cursor: &Option<String>| {
            let cursor = crate::text::quoted(cursor.as_ref()?);
            Some(format!("{word}: {command}{limit} --cursor {cursor}"))
        };
        [way("next page", &listing.next), way("previous page", &listing.previous)]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Prints a list as comma-separated values: as many entries as were asked for, or all
    /// from the cursor on. Says whether there was a list: `page` may have none.
    pub fn export<T>(
        &self,
        sheet: &Sheet<T>,
        page: impl FnMut(&LinkListPage) -> anyhow::Result<Option<Listing<T>>>,
    ) -> anyhow::Result<bool> {
        Ok(csv::to_stdout(|out| self.write(out, sheet, page))?.unwrap_or(true))
    }

    fn write<T>(
        &self,
        out: &mut (impl Write + ?Sized),
        sheet: &Sheet<T>,
        mut page: impl FnMut(&LinkListPage) -> anyhow::Result<Option<Listing<T>>>,
    ) -> anyhow::Result<bool> {
        let mut asked = self.page(false)?;
        let mut left = self.limit.unwrap_or(u32::MAX);
        let Some(mut listing) = page(&asked)? else { return Ok(false) };
        let head: Vec<String> = sheet.columns.iter().map(|name| (*name).to_owned()).collect();
        out.write_all(csv::line(&head).as_bytes())?;
        loop {
            for item in &listing.items {
                out.write_all(csv::line(&(sheet.cells)(item)).as_bytes())?;
            }
            if self.limit.is_some() {
                left = left.saturating_sub(u32::try_from(listing.items.len()).unwrap_or(u32::MAX));
            }
            let Some(next) = listing.next.filter(|_| left > 0) else { return Ok(true) };
            asked = LinkListPage { limit: asked.limit.min(left), cursor: Some(next) };
            // A list that is gone meanwhile has ended.
            match page(&asked)? {
                Some(more) => listing = more,
                None => return Ok(true),
            }
        }
    }
}

/// A list as comma-separated values.
pub struct Sheet<T> {
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// An entry's cells, ready to be written.
    pub cells: fn(&T) -> Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of the numbers before 5,000.
    fn page(asked: &LinkListPage) -> anyhow::Result<Option<Listing<u32>>> {
        let from = asked.cursor.as_ref().map_or(0, |cursor| cursor.parse().unwrap());
        let to = (from + asked.limit).min(5_000);
        let next = (to < 5_000).then(|| to.to_string());
        Ok(Some(Listing { items: (from..to).collect(), next, previous: None }))
    }

    const SHEET: Sheet<u32> = Sheet { columns: &["number"], cells: |it| vec![it.to_string()] };

    fn exported(flags: &Flags) -> Vec<String> {
        let mut out = Vec::new();
        assert!(flags.write(&mut out, &SHEET, page).unwrap());
        let text = String::from_utf8(out).unwrap();
        text.split_terminator("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn an_export_has_no_cap_but_the_one_that_is_asked_for() {
        let all = Flags { csv: true, ..Flags::default() };
        let lines = exported(&all);
        assert_eq!((lines.len(), &*lines[0], &*lines[5_000]), (5_001, "number", "4999"));
        let some = Flags { limit: Some(1_001), cursor: Some("7".into()), ..all.clone() };
        let lines = exported(&some);
        assert_eq!((lines.len(), &*lines[1], &*lines[1_001]), (1_002, "7", "1007"));
        let mut out = Vec::new();
        assert!(!all.write(&mut out, &SHEET, |_| Ok(None)).unwrap());
        assert!(out.is_empty(), "what is not there has no head");
    }

    #[test]
    fn a_page_that_cannot_be_had_says_what_can() {
        let flags = |limit, csv| Flags { limit, cursor: None, csv };
        assert_eq!(flags(None, false).page(true).unwrap().limit, LINK_LIST_LIMIT);
        let many = flags(Some(LIST_LIMIT_MAX + 1), false).page(true).unwrap_err().to_string();
        assert!(many.contains("1001") && many.contains("--csv"), "{many}");
        assert_eq!(
            flags(Some(LIST_LIMIT_MAX + 1), true).page(false).unwrap().limit,
            LIST_LIMIT_MAX
        );
        let both = flags(None, true).page(true).unwrap_err().to_string();
        assert!(both.contains("--json") && both.contains("--csv"), "{both}");
    }

    #[test]
    fn the_ways_on_and_back_are_commands() {
        let flags = Flags { limit: Some(3), ..Flags::default() };
        let listing = Listing { items: vec![1], next: Some("nx".into()), previous: None };
        let on = "next page: driftline top --limit 3 --cursor nx";
        assert_eq!(flags.ways("driftline top", &listing), [on]);
        let listing = Listing { previous: Some("p y".into()), next: None, ..listing };
        let back = "previous page: driftline top --cursor 'p y'";
        assert_eq!(Flags::default().ways("driftline top", &listing), [back]);
    }
}
