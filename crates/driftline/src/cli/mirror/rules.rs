//! `driftline mirror check-rules`: what a site's rules match on a page.

use crate::cli::say;
use crate::text::shown;
use anyhow::Context;
use clap::Args as ClapArgs;
use page::charset;
use page::mirror::rules::{PageMatches, Rules};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Bytes of a rules file, and of a page.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Try a mirror's rules on a page, and show what they match
///
/// The page is read from a file, such as one saved by a browser; nothing is fetched. Exit code: 0
/// the page is in scope and every selector matched, 1 not so, 2 error.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror check-rules rules.toml \\
      https://example.com/news/1.html page.html")]
pub struct CheckRulesArgs {
    /// The rules file
    #[arg(value_name = "RULES")]
    rules: PathBuf,
    /// URL of the page
    #[arg(value_name = "URL")]
    url: String,
    /// File with the page's HTML
    #[arg(value_name = "PAGE")]
    page: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct RulesResult {
    is_in_scope: bool,
    scope_pattern: Option<String>,
    role: Option<String>,
    name: Option<String>,
    /// What was found, by its name: title, author, date, next, body.
    found: Vec<(&'static str, String)>,
    links: Vec<LinkResult>,
    /// Selectors that matched nothing.
    unmatched: Vec<String>,
}

#[derive(Serialize)]
struct LinkResult {
    url: String,
    text: String,
    is_in_scope: bool,
}

impl From<PageMatches> for RulesResult {
    fn from(it: PageMatches) -> RulesResult {
        let found = [
            ("title", it.title),
            ("author", it.author),
            ("date", it.date),
            ("next", it.next),
            ("body", it.body),
        ];
        let links = it.items.into_iter().map(|link| LinkResult {
            url: link.url,
            text: link.text,
            is_in_scope: link.is_in_scope,
        });
        RulesResult {
            is_in_scope: it.is_in_scope,
            scope_pattern: it.scope_pattern,
            role: it.role.map(|role| format!("{role:?}").to_lowercase()),
            name: it.name,
            found: found.into_iter().filter_map(|(what, text)| Some((what, text?))).collect(),
            links: links.collect(),
            unmatched: it.unmatched,
        }
    }
}

pub fn check(args: CheckRulesArgs) -> anyhow::Result<ExitCode> {
    let text = String::from_utf8(read(&args.rules)?)
        .with_context(|| format!("{} is not UTF-8", args.rules.display()))?;
    let rules = Rules::parse(&text).with_context(|| args.rules.display().to_string())?;
    let bytes = read(&args.page)?;
    let html = charset::decode(&bytes, charset::decide(&bytes, None).encoding);
    let result = RulesResult::from(rules.matches(&args.url, &html));
    match args.json {
        true => say(&serde_json::to_string(&result)?),
        false => print(&result),
    }
    let is_whole = result.is_in_scope && result.unmatched.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(result: &RulesResult) {
    say(&match (&result.scope_pattern, result.is_in_scope) {
        (Some(pattern), true) => format!("in scope, by {}", shown(pattern)),
        (Some(pattern), false) => format!("out of scope, by {}", shown(pattern)),
        (None, true) => "in scope".to_owned(),
        (None, false) => "out of scope: no rule reaches it".to_owned(),
    });
    match (&result.role, &result.name) {
        (Some(role), Some(name)) => say(&format!("{role}: {}", shown(name))),
        (Some(role), None) => say(role),
        (None, _) => say("no rule says what it is"),
    }
    for (what, value) in &result.found {
        say(&format!("  {what:<7} {}", shown(value)));
    }
    result.links.iter().for_each(print_link);
    for selector in &result.unmatched {
        say(&format!("  matched nothing: {}", shown(selector)));
    }
}

fn print_link(link: &LinkResult) {
    let scope = if link.is_in_scope { "" } else { "  (out of scope)" };
    say(&format!("  link    {}  {}{scope}", shown(&link.url), shown(&link.text)));
}

fn read(path: &PathBuf) -> anyhow::Result<Vec<u8>> {
    let length = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    anyhow::ensure!(
        length <= FILE_BYTES_MAX,
        "{} has {length} bytes; at most {FILE_BYTES_MAX} are read",
        path.display()
    );
    std::fs::read(path).with_context(|| path.display().to_string())
}
