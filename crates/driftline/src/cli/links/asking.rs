//! What may be asked about the links of a page: the flags, and the question as it goes
//! through a socket.
//!
//! Invariant: a time is a moment by then, so that whoever answers needs no clock of ours; a
//! cursor and an export name the one list that they are about.

use super::keeping::Keeping;
use super::listing::{self, Flags};
use crate::cli::place::Place;
use crate::cli::report::moments;
use crate::cli::words::quoted;
use anyhow::{Context, ensure};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outputs::links::queries::Filter;
use page::facts::LinkKind;
use serde::{Deserialize, Serialize};

/// The kinds of links that lead to pages, and what they are called.
const KINDS: [(&str, LinkKind); 10] = [
    ("a", LinkKind::A),
    ("area", LinkKind::Area),
    ("frame", LinkKind::Frame),
    ("canonical", LinkKind::Canonical),
    ("redirect", LinkKind::Redirect),
    ("refresh", LinkKind::Refresh),
    ("alternate", LinkKind::Alternate),
    ("next", LinkKind::Next),
    ("prev", LinkKind::Prev),
    ("feed", LinkKind::Feed),
];

/// What the kinds of links are called.
pub const KIND_NAMES: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut at = 0;
    while at < KINDS.len() {
        names[at] = KINDS[at].0;
        at += 1;
    }
    names
};

/// What a kind of links is called.
pub fn kind_name(kind: LinkKind) -> &'static str {
    KINDS.iter().find(|(_, it)| *it == kind).map_or("other", |(name, _)| name)
}

/// Show who links to a page, what it links to, and which links it lost
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline links https://example.com/page
Example: driftline links https://example.com/page --in --nofollow no --limit 100
Example: driftline links https://example.com/page --since 7d
Example: driftline links https://example.com/page --lost --csv
Example: driftline links verify")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(flatten)]
    pub looking: Looking,
    #[command(subcommand)]
    pub keeping: Option<Keeping>,
}

/// A look at the links of a page.
#[derive(ClapArgs)]
pub struct Looking {
    #[command(flatten)]
    pub place: Place,
    /// The page's URL; a name without http:// or https:// may be either
    #[arg(required = true)]
    url: Option<String>,
    #[command(flatten)]
    lists: Lists,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    pub flags: Flags,
}

/// Which list; without one, the beginning of each.
#[derive(ClapArgs)]
#[group(multiple = false)]
struct Lists {
    /// List who links to it
    #[arg(long = "in")]
    inward: bool,
    /// List what it links to
    #[arg(long)]
    out: bool,
    /// List who linked to it and does not any more, and why
    #[arg(long)]
    lost: bool,
}

/// Which links are listed.
#[derive(ClapArgs)]
struct Only {
    /// Only links that are new since, or were lost since: a span back from now such as 7d, or a
    /// time such as 2026-01-31 or 2026-01-31T12:00
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only links that ask not to be followed, or only the others
    #[arg(long, value_name = "YES",
          value_parser = PossibleValuesParser::new(["yes", "no"]).map(|text| text == "yes"))]
    nofollow: Option<bool>,
    /// Only links of this kind
    #[arg(long, value_name = "KIND",
          value_parser = PossibleValuesParser::new(KIND_NAMES))]
    kind: Option<String>,
}

/// A list of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// Who links to the page.
    In,
    /// What it links to.
    Out,
    /// Who linked to it.
    Lost,
}

impl List {
    /// Its flag.
    pub fn flag(self) -> &'static str {
        match self {
            List::In => "--in",
            List::Out => "--out",
            List::Lost => "--lost",
        }
    }
}

/// The question, as it goes through a socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Ask {
    pub url: String,
    /// One list; without it, the beginning of each.
    pub list: Option<List>,
    pub filter: Filter,
    pub page: listing::Asked,
}

impl Ask {
    /// Whether a list is part of the answer. What was lost is, where it is about a time.
    pub fn wants(&self, list: List) -> bool {
        match self.list {
            Some(named) => named == list,
            None => list != List::Lost || self.filter.since_ms.is_some(),
        }
    }
}

impl Looking {
    /// The question, at a moment.
    pub fn ask(&self, now_ms: i64) -> anyhow::Result<Ask> {
        let list = self.list();
        ensure!(
            list.is_some() || self.flags.cursor.is_none(),
            "a cursor belongs to one list; name it with --in, --out or --lost"
        );
        ensure!(
            list.is_some() || !self.flags.csv,
            "comma-separated values are of one list; name it with --in, --out or --lost"
        );
        let since_ms = match &self.only.since {
            Some(text) => {
                let moment = moments::moment(text, now_ms);
                Some(moment.with_context(|| format!("--since {text:?}"))?)
            }
            None => None,
        };
        let kind = self.only.kind.as_deref().and_then(kind_of);
        let filter = Filter { since_ms, nofollow: self.only.nofollow, kind };
        let page = self.flags.asked(self.place.json())?;
        Ok(Ask { url: self.url().to_owned(), list, filter, page })
    }

    /// The page that is asked for.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or_default()
    }

    /// The command that asks for one list, without a cursor.
    pub fn command(&self, list: List) -> String {
        let mut out = format!("driftline links {} {}", quoted(self.url()), list.flag());
        let nofollow = self.only.nofollow.map(|it| if it { "yes" } else { "no" });
        let flags = [
            ("since", self.only.since.as_deref()),
            ("nofollow", nofollow),
            ("kind", self.only.kind.as_deref()),
        ];
        for (flag, value) in flags {
            if let Some(value) = value {
                out.push_str(&format!(" --{flag} {}", quoted(value)));
            }
        }
        out + &self.place.flags()
    }

    fn list(&self) -> Option<List> {
        match &self.lists {
            Lists { inward: true, .. } => Some(List::In),
            Lists { out: true, .. } => Some(List::Out),
            Lists { lost: true, .. } => Some(List::Lost),
            _ => None,
        }
    }
}

/// The kind of links of a name.
pub fn kind_of(name: &str) -> Option<LinkKind> {
    KINDS.iter().find(|(it, _)| *it == name).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn looking(args: &[&str]) -> Result<Looking, String> {
        let line = Line::try_parse_from([&["links"], args].concat());
        line.map(|line| line.args.looking).map_err(|error| error.to_string())
    }

    #[test]
    fn a_cursor_and_an_export_need_one_list() {
        for flags in [&["a.example", "--cursor", "nx"][..], &["a.example", "--csv"]] {
            let error = looking(flags).unwrap().ask(0).unwrap_err().to_string();
            assert!(error.contains("--in, --out or --lost"), "{error}");
            looking(&[flags, &["--lost"]].concat()).unwrap().ask(0).unwrap();
        }
        assert!(looking(&["a.example", "--in", "--out"]).is_err_and(|it| it.contains("--in")));
        assert!(looking(&[]).is_err_and(|error| error.contains("URL")));
    }

    #[test]
    fn a_question_has_moments_and_kinds() {
        let args =
            ["a.example", "--since", "1h", "--nofollow", "no", "--kind", "area", "--limit", "7"];
        let it = looking(&args).unwrap();
        let ask = it.ask(3_600_007).unwrap();
        let expected =
            Filter { since_ms: Some(7), nofollow: Some(false), kind: Some(LinkKind::Area) };
        assert_eq!(ask.filter, expected);
        assert!([List::In, List::Out, List::Lost].into_iter().all(|list| ask.wants(list)));
        assert_eq!(
            it.command(List::Lost),
            "driftline links a.example --lost --since 1h --nofollow no --kind area"
        );
        let plain = looking(&["a.example"]).unwrap().ask(0).unwrap();
        assert!(plain.wants(List::In) && plain.wants(List::Out) && !plain.wants(List::Lost));
        let when = looking(&["a.example", "--since", "soon"]).unwrap().ask(0).unwrap_err();
        assert!(format!("{when:#}").contains("--since \"soon\": a time is a span"), "{when:#}");
        assert!(looking(&["a.example", "--kind", "b"]).is_err_and(|it| it.contains("redirect")));
    }
}
