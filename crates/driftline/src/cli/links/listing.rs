//! What the lists of the link index have in common: which page of one is asked for, how to
//! go on and back, and the whole of it as comma-separated values.
//!
//! Invariant: one page is in memory at a time; with the longest URLs it fits through a
//! socket.

use crate::cli::csv;
use anyhow::ensure;
use clap::Args as ClapArgs;
use outputs::links::paging::{Listing, Paging};
use serde::{Deserialize, Serialize};
use std::io::Write;

/// Entries of one answer where nothing else is said.
const LIMIT: u32 = 25;
/// Entries of one answer at most. Each may have a URL twice and the words of a link.
const LIMIT_MAX: u32 = 2_000;

/// The page of a list, as it is written.
#[derive(ClapArgs, Clone, Default)]
pub struct Flags {
    /// Entries to list [default: 25, or all of them with --csv]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Go on, or back, from where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Write comma-separated values, and all there are
    #[arg(long)]
    pub csv: bool,
}

/// The page of a list, as it goes through a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    limit: u32,
    cursor: Option<String>,
}

impl Asked {
    /// As the index takes it.
    pub fn paging(&self) -> store::Result<Paging> {
        Paging::new(self.limit.min(LIMIT_MAX) as usize, self.cursor.as_deref())
    }
}

impl Flags {
    /// The page that is asked for first.
    pub fn asked(&self, json: bool) -> anyhow::Result<Asked> {
        ensure!(!(self.csv && json), "an answer is either --json or --csv; leave one of them out");
        let limit = match self.limit {
            None if self.csv => LIMIT_MAX,
            Some(limit) if self.csv => limit.min(LIMIT_MAX),
            limit => limit.unwrap_or(LIMIT),
        };
        ensure!(
            limit <= LIMIT_MAX,
            "an answer has at most {LIMIT_MAX} entries, not {limit}; take all of them with --csv, \
             or go on with --cursor"
        );
        Ok(Asked { limit, cursor: self.cursor.clone() })
    }

    /// The lines that say how to go on and back from a page; `command` is the one that
    /// asked, without its cursor.
    pub fn ways<T>(&self, command: &str, listing: &Listing<T>) -> Vec<String> {
        let limit = self.limit.map_or(String::new(), |limit| format!(" --limit {limit}"));
        let way = |word: &str, cursor: &Option<String>| {
            let cursor = crate::cli::words::quoted(cursor.as_ref()?);
            Some(format!("{word} with: {command}{limit} --cursor {cursor}"))
        };
        [way("go on", &listing.next), way("go back", &listing.previous)]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Prints a list as comma-separated values: as many entries as were asked for, or all
    /// from the cursor on. Says whether there was a list: `page` may have none.
    pub fn export<T>(
        &self,
        sheet: &Sheet<T>,
        page: impl FnMut(&Asked) -> anyhow::Result<Option<Listing<T>>>,
    ) -> anyhow::Result<bool> {
        Ok(csv::to_stdout(|out| self.write(out, sheet, page))?.unwrap_or(true))
    }

    fn write<T>(
        &self,
        out: &mut (impl Write + ?Sized),
        sheet: &Sheet<T>,
        mut page: impl FnMut(&Asked) -> anyhow::Result<Option<Listing<T>>>,
    ) -> anyhow::Result<bool> {
        let mut asked = self.asked(false)?;
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
            asked = Asked { limit: asked.limit.min(left), cursor: Some(next) };
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
    fn page(asked: &Asked) -> anyhow::Result<Option<Listing<u32>>> {
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
        let some = Flags { limit: Some(2_001), cursor: Some("7".into()), ..all.clone() };
        let lines = exported(&some);
        assert_eq!((lines.len(), &*lines[1], &*lines[2_001]), (2_002, "7", "2007"));
        let mut out = Vec::new();
        assert!(!all.write(&mut out, &SHEET, |_| Ok(None)).unwrap());
        assert!(out.is_empty(), "what is not there has no head");
    }

    #[test]
    fn a_page_that_cannot_be_had_says_what_can() {
        let flags = |limit, csv| Flags { limit, cursor: None, csv };
        assert_eq!(flags(None, false).asked(true).unwrap().limit, LIMIT);
        let many = flags(Some(LIMIT_MAX + 1), false).asked(true).unwrap_err().to_string();
        assert!(many.contains("2001") && many.contains("--csv"), "{many}");
        assert_eq!(flags(Some(LIMIT_MAX + 1), true).asked(false).unwrap().limit, LIMIT_MAX);
        let both = flags(None, true).asked(true).unwrap_err().to_string();
        assert!(both.contains("--json") && both.contains("--csv"), "{both}");
    }

    #[test]
    fn the_ways_on_and_back_are_commands() {
        let flags = Flags { limit: Some(3), ..Flags::default() };
        let listing = Listing { items: vec![1], next: Some("nx".into()), previous: None };
        let on = "go on with: driftline top --limit 3 --cursor nx";
        assert_eq!(flags.ways("driftline top", &listing), [on]);
        let listing = Listing { previous: Some("p y".into()), next: None, ..listing };
        let back = "go back with: driftline top --cursor 'p y'";
        assert_eq!(Flags::default().ways("driftline top", &listing), [back]);
    }
}
