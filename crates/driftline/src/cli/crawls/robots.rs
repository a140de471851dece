//! `driftline robots`: may this agent fetch this URL, and which line says so.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use page::robots::{BODY_BYTES_MAX, Robots, RuleKind, Verdict};
use serde_json::json;

use crate::cli::say;
use crate::text::shown;

/// Check whether a robots.txt allows an agent to fetch a URL, and show the line that decides
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 allowed, 1 disallowed, 2 error: the command line is wrong or the \
         file cannot be read.\n\nExample: driftline robots --file robots.txt --agent FooBot \
         https://example.com/private/page"
)]
pub struct Args {
    /// The robots.txt to read
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// The crawler's name: a product token such as FooBot, or a whole User-Agent header
    #[arg(long, value_name = "AGENT")]
    agent: String,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    /// An http or https URL, or a path that begins with `/`
    #[arg(value_parser = url_or_path)]
    url: String,
}

/// Answers with exit code 0 when the URL is allowed and 1 when it is not.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let robots = Robots::parse(&read(&args.file)?);
    let verdict = robots.verdict(&args.agent, &args.url);
    say(&if args.json { as_json(&verdict) } else { as_text(&verdict) });
    Ok(if verdict.allowed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The bytes that count, and one more, so that the parser sees that there is one.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut body))
        .map_err(|error| {
        let path = path.display();
        anyhow!("cannot read {path}: {error}; check the path given with --file")
    })?;
    Ok(body)
}

fn as_text(verdict: &Verdict) -> String {
    let word = if verdict.allowed { "allowed" } else { "disallowed" };
    match &verdict.rule {
        Some(rule) => {
            let (line, text, agent) = (rule.line, shown(&rule.text), rule.agent);
            format!("{word}\nline {line}: {text}  (in the group for {agent})")
        }
        None => format!("{word}\nno rule applies"),
    }
}

fn as_json(verdict: &Verdict) -> String {
    let rule = verdict.rule.as_ref().map(|rule| {
        let kind = match rule.kind {
            RuleKind::Allow => "allow",
            RuleKind::Disallow => "disallow",
        };
        json!({ "line": rule.line, "text": rule.text, "kind": kind, "agent": rule.agent })
    });
    json!({ "allowed": verdict.allowed, "rule": rule }).to_string()
}

/// The URL is compared as it is given, so that what a rule really sees can be tried.
fn url_or_path(text: &str) -> Result<String, String> {
    let begins = |start: &str| {
        text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    if ["/", "http://", "https://"].into_iter().any(begins) {
        return Ok(text.to_owned());
    }
    Err("give an http or https URL, or a path that begins with /".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_path_on_the_web_is_taken() {
        for good in ["/", "/a?b", "http://a.example", "HTTPS://a.example/x"] {
            assert_eq!(url_or_path(good).as_deref(), Ok(good));
        }
        for bad in ["", "a.example/x", "ftp://a.example/", "http:/a", "é"] {
            assert!(url_or_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_answer_names_the_line() {
        let robots = Robots::parse(b"User-agent: *\nDisallow: /a\x1b[2J\n");
        let blocked = robots.verdict("x", "/a\u{1b}[2Jb");
        assert_eq!(
            as_text(&blocked),
            "disallowed\nline 2: Disallow: /a\\u{1b}[2J  (in the group for *)"
        );
        let parsed: serde_json::Value = serde_json::from_str(&as_json(&blocked)).unwrap();
        assert_eq!(parsed["rule"]["line"], 2);
        assert_eq!(parsed["allowed"], false);
        assert_eq!(as_text(&robots.verdict("x", "/b")), "allowed\nno rule applies");
    }
}
