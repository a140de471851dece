//! The flags of `driftline links`, and the request that they make.
//!
//! Invariant: a time is a moment in the request, so that whoever answers needs no clock of ours; a
//! cursor and an export name the one list that they are about.

use super::listing::Flags;
use super::maintenance::MaintenanceCommand;
use crate::place::Place;
use crate::text::{moments, quoted};
use crate::verbs::links::kinds::LinkKindName;
use crate::verbs::links::{LinkList, LinksRequest};
use anyhow::{Context, ensure};
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};

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
    pub looking: LinksQueryArgs,
    #[command(subcommand)]
    pub keeping: Option<MaintenanceCommand>,
}

/// A look at the links of a page.
#[derive(ClapArgs)]
pub struct LinksQueryArgs {
    #[command(flatten)]
    pub place: Place,
    /// URL of the page; without a scheme, http and https are both tried
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
    /// List the pages that link to it
    #[arg(long = "in")]
    inward: bool,
    /// List the pages it links to
    #[arg(long)]
    out: bool,
    /// List the pages that no longer link to it, and why
    #[arg(long)]
    lost: bool,
}

/// Which links are listed.
#[derive(ClapArgs)]
struct Only {
    /// Only links that are new or were lost since this time: a duration before now such as 7d, or a
    /// time such as 2026-01-31 or 2026-01-31T12:00
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only links with rel=nofollow, or only those without
    #[arg(long, value_name = "YES",
          value_parser = PossibleValuesParser::new(["yes", "no"]).map(|text| text == "yes"))]
    nofollow: Option<bool>,
    /// Only links of this kind
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<LinkKindName>,
}

/// The flag that asks for a list.
pub fn flag_of(list: LinkList) -> &'static str {
    match list {
        LinkList::In => "--in",
        LinkList::Out => "--out",
        LinkList::Lost => "--lost",
    }
}

impl LinksQueryArgs {
    /// The request, at a moment.
    pub fn request(&self, now_ms: i64) -> anyhow::Result<LinksRequest> {
        let list = self.list();
        ensure!(
            list.is_some() || self.flags.cursor.is_none(),
            "a cursor belongs to one list; choose it with --in, --out or --lost"
        );
        ensure!(
            list.is_some() || !self.flags.csv,
            "CSV has one list; choose it with --in, --out or --lost"
        );
        let since_ms = match &self.only.since {
            Some(text) => {
                let moment = moments::moment(text, now_ms);
                Some(moment.with_context(|| format!("--since {text:?}"))?)
            }
            None => None,
        };
        let (nofollow, kind, url) = (self.only.nofollow, self.only.kind, self.url().to_owned());
        let page = self.flags.page(self.place.json())?;
        Ok(LinksRequest { url, list, since_ms, nofollow, kind, page })
    }

    /// The page that is asked for.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or_default()
    }

    /// The command that asks for one list, without a cursor.
    pub fn command(&self, list: LinkList) -> String {
        let mut out = format!("driftline links {} {}", quoted(self.url()), flag_of(list));
        let nofollow = self.only.nofollow.map(|it| if it { "yes" } else { "no" });
        let flags = [
            ("since", self.only.since.as_deref()),
            ("nofollow", nofollow),
            ("kind", self.only.kind.map(LinkKindName::name)),
        ];
        for (flag, value) in flags {
            if let Some(value) = value {
                out.push_str(&format!(" --{flag} {}", quoted(value)));
            }
        }
        out + &self.place.flags()
    }

    fn list(&self) -> Option<LinkList> {
        match &self.lists {
            Lists { inward: true, .. } => Some(LinkList::In),
            Lists { out: true, .. } => Some(LinkList::Out),
            Lists { lost: true, .. } => Some(LinkList::Lost),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use outputs::links::queries::Filter;
    use page::facts::LinkKind;

    #[derive(Parser)]
    struct LinksCommand {
        #[command(flatten)]
        args: Args,
    }

    fn looking(args: &[&str]) -> Result<LinksQueryArgs, String> {
        let line = LinksCommand::try_parse_from([&["links"], args].concat());
        line.map(|line| line.args.looking).map_err(|error| error.to_string())
    }

    #[test]
    fn a_cursor_and_an_export_need_one_list() {
        for flags in [&["a.example", "--cursor", "nx"][..], &["a.example", "--csv"]] {
            let error = looking(flags).unwrap().request(0).unwrap_err().to_string();
            assert!(error.contains("--in, --out or --lost"), "{error}");
            looking(&[flags, &["--lost"]].concat()).unwrap().request(0).unwrap();
        }
        assert!(looking(&["a.example", "--in", "--out"]).is_err_and(|it| it.contains("--in")));
        assert!(looking(&[]).is_err_and(|error| error.contains("URL")));
    }

    #[test]
    fn a_question_has_moments_and_kinds() {
        let args =
            ["a.example", "--since", "1h", "--nofollow", "no", "--kind", "area", "--limit", "7"];
        let it = looking(&args).unwrap();
        let request = it.request(3_600_007).unwrap();
        let expected =
            Filter { since_ms: Some(7), nofollow: Some(false), kind: Some(LinkKind::Area) };
        assert_eq!(request.filter(), expected);
        assert!(
            [LinkList::In, LinkList::Out, LinkList::Lost]
                .into_iter()
                .all(|list| request.wants(list))
        );
        assert_eq!(
            it.command(LinkList::Lost),
            "driftline links a.example --lost --since 1h --nofollow no --kind area"
        );
        let plain = looking(&["a.example"]).unwrap().request(0).unwrap();
        assert!(
            plain.wants(LinkList::In) && plain.wants(LinkList::Out) && !plain.wants(LinkList::Lost)
        );
        let when = looking(&["a.example", "--since", "soon"]).unwrap().request(0).unwrap_err();
        assert!(format!("{when:#}").contains("--since \"soon\": a time is a duration"), "{when:#}");
        assert!(looking(&["a.example", "--kind", "b"]).is_err_and(|it| it.contains("redirect")));
    }
}
