//! `driftline search`: finds documents by their words; and keeps the index that does.
//!
//! Invariant: what comes from documents is shown without anything that a terminal would
//! obey.

mod maintenance;

use super::{say, say_json, terminal};
use crate::place::Place;
use crate::text::{count, date, quoted, shown, span};
use crate::verbs::search::{HITS_MAX, Search, SearchOrder, SearchRequest, usual_limit};
use clap::Args as ClapArgs;
use maintenance::SearchMaintenanceCommand;
use outputs::search::ask::{Answer, Hit, SnippetFragment};
use std::process::ExitCode;
use store::tables::cursors;

/// Search the crawled documents
///
/// A document must contain all words. Also: "a phrase", OR, -word, (parentheses) and word* for
/// words that begin so. Filters: site:host, domain:name, intitle:word, inurl:word, lang:en,
/// type:pdf, before:2024-05, after:2024-01-31, links:>10.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline search 'hash map'
Example: driftline search '\"borrow checker\" site:example.com -intitle:index'
Example: driftline search --sort date 'release lang:en' --json
Example: driftline search verify")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(flatten)]
    looking: SearchArgs,
    #[command(subcommand)]
    keeping: Option<SearchMaintenanceCommand>,
}

/// A question.
#[derive(ClapArgs)]
struct SearchArgs {
    #[command(flatten)]
    place: Place,
    /// The query; write -- before it if it is one of the commands below
    #[arg(required = true, value_name = "QUESTION")]
    question: Vec<String>,
    /// Hits per page
    #[arg(long, value_name = "N", default_value_t = usual_limit(),
          value_parser = clap::value_parser!(u16).range(1..=i64::from(HITS_MAX)))]
    limit: u16,
    /// Cursor of the next page, from an earlier answer
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Sort order
    #[arg(long, value_enum, value_name = "ORDER", default_value_t)]
    sort: SearchOrder,
    /// Show near-duplicates separately
    #[arg(long)]
    duplicates: bool,
    /// Show the number of hits by domain, language, type and year
    #[arg(long)]
    facets: bool,
    /// Only documents that a reader with this access token may see; can be repeated
    #[arg(long, value_name = "TOKEN")]
    access: Vec<String>,
    /// Only documents that everybody may see, or readers with the given access tokens
    #[arg(long)]
    restricted: bool,
}

/// Runs the verb. Nothing found is a "no".
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.keeping {
        Some(keeping) => maintenance::run(keeping),
        None => look(&args.looking),
    }
}

fn look(args: &SearchArgs) -> anyhow::Result<ExitCode> {
    let request = SearchRequest {
        q: args.question.join(" "),
        limit: args.limit,
        cursor: args.cursor.clone(),
        sort: args.sort,
        duplicates: args.duplicates,
        facets: args.facets || args.place.json(),
        access: args.access.clone(),
        restricted: args.restricted,
    };
    let answer = args.place.ask::<Search>(request)?;
    match args.place.json() {
        true => say_json(&answer)?,
        false => lines(args, &answer).iter().for_each(|line| say(line)),
    }
    Ok(if answer.hits.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn lines(args: &SearchArgs, answer: &Answer) -> Vec<String> {
    let columns = terminal::columns(std::io::stdout());
    let look =
        HitStyle { is_bold: columns.is_some() && std::env::var_os("NO_COLOR").is_none(), columns };
    let mut lines = vec![found_line(&args.question.join(" "), answer)];
    lines.extend(notes(answer));
    if let Some(better) = &answer.suggestion {
        lines.push(format!("did you mean: {}", shown(better)));
    }
    for hit in &answer.hits {
        lines.push(String::new());
        lines.extend(hit_lines(hit, look));
    }
    for facet in answer.facets.iter().filter(|it| args.facets && !it.values.is_empty()) {
        let values: Vec<String> = facet
            .values
            .iter()
            .map(|(value, count)| format!("{} ({count})", shown(value)))
            .collect();
        if lines.last().is_some_and(|line| !line.starts_with("by ")) {
            lines.push(String::new());
        }
        lines.push(format!("by {}: {}", facet.name, values.join(", ")));
    }
    match &answer.next {
        Some(next) => lines.push(format!("next page: {}", again(args, next))),
        None if answer.has_more => {
            lines.push("there are more hits than can be listed; narrow the query down".to_owned());
        }
        None => {}
    }
    lines
}

fn found_line(question: &str, answer: &Answer) -> String {
    let least = if answer.is_partial { "at least " } else { "" };
    match answer.total {
        0 => format!("nothing was found for {}", shown(question)),
        1 => format!("{least}1 document in {} ms", answer.took_ms),
        many => format!("{least}{many} documents in {} ms", answer.took_ms),
    }
}

/// What an answer lacks.
fn notes(answer: &Answer) -> Vec<String> {
    let mut notes = Vec::new();
    if answer.is_partial {
        let why = "the time limit was reached, or a word with * matches too many words";
        notes.push(format!("the result is incomplete: {why}"));
    }
    if answer.behind_chunks > 0 {
        let (chunks, since) = (count(answer.behind_chunks, "chunk"), span(answer.behind_ms));
        let what = cursors::title(cursors::SEARCH);
        notes.push(format!(
            "{what} is {chunks} behind, for {since}: their documents are not found yet"
        ));
    }
    if answer.is_relaxed {
        notes.push("no document has all the words; these have most of them".to_owned());
    }
    notes
}

/// How hits look where they are printed.
#[derive(Clone, Copy)]
struct HitStyle {
    /// What was asked for stands out.
    is_bold: bool,
    /// Columns of the terminal; without one, nothing is wrapped.
    columns: Option<usize>,
}

/// What stands before the lines below a title.
const INDENT: &str = "    ";

fn hit_lines(hit: &Hit, look: HitStyle) -> Vec<String> {
    let title = if hit.title.is_empty() { "(no title)".to_owned() } else { shown(&hit.title) };
    let mut lines = vec![title, format!("    {}", shown(&hit.url))];
    if !hit.snippet.is_empty() {
        lines.extend(snippet_lines(&hit.snippet, look));
    }
    let links = match hit.links {
        1 => "1 in-link".to_owned(),
        many => format!("{many} in-links"),
    };
    let mut facts = vec![date(hit.date_ms), links];
    facts.extend(Some(shown(&hit.language)).filter(|it| !it.is_empty()));
    facts.extend(Some(shown(&hit.media)).filter(|it| !it.is_empty()));
    if hit.similar_count > 0 {
        facts.push(format!("{} near-duplicates", hit.similar_count));
    }
    lines.push(format!("    {}", facts.join(", ")));
    lines
}

/// A snippet, wrapped at words where it is wider than the terminal; what was asked for stands
/// out where that can be shown.
fn snippet_lines(snippet: &[SnippetFragment], look: HitStyle) -> Vec<String> {
    let pieces: Vec<(String, bool)> =
        snippet.iter().map(|piece| (shown(&piece.text), piece.hit)).collect();
    let lines = match look.columns {
        Some(columns) => terminal::wrapped(&pieces, columns.saturating_sub(INDENT.len() + 1)),
        None => vec![pieces],
    };
    let piece_of = |(text, is_hit): &(String, bool)| match *is_hit && look.is_bold {
        true => format!("\u{1b}[1m{text}\u{1b}[0m"),
        false => text.clone(),
    };
    let line_of = |line: &Vec<(String, bool)>| line.iter().map(piece_of).collect::<String>();
    lines.iter().map(|line| format!("{INDENT}{}", line_of(line))).collect()
}

/// The command that shows the next page.
fn again(args: &SearchArgs, next: &str) -> String {
    let mut words = vec!["driftline search".to_owned(), quoted(&args.question.join(" "))];
    words.extend(Some(args.place.flags().trim_start().to_owned()).filter(|it| !it.is_empty()));
    if args.limit != usual_limit() {
        words.push(format!("--limit {}", args.limit));
    }
    match args.sort {
        SearchOrder::Relevance => {}
        SearchOrder::Date => words.push("--sort date".to_owned()),
        SearchOrder::Links => words.push("--sort links".to_owned()),
    }
    if args.duplicates {
        words.push("--duplicates".to_owned());
    }
    words.extend(args.access.iter().map(|token| format!("--access {}", quoted(token))));
    if args.restricted {
        words.push("--restricted".to_owned());
    }
    words.push(format!("--cursor {next}"));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_it_lacks_and_nothing_otherwise() {
        assert_eq!(notes(&Answer::default()), [""; 0]);
        let (behind_chunks, behind_ms) = (3, 2_500);
        let behind = Answer { behind_chunks, behind_ms, is_partial: true, ..Answer::default() };
        assert_eq!(
            notes(&behind),
            [
                "the result is incomplete: the time limit was reached, or a word with * \
                 matches too many words",
                "the search index is 3 chunks behind, for 2 s: their documents are not found yet",
            ]
        );
    }

    #[test]
    fn a_snippet_is_wrapped_at_words_and_every_line_has_its_indent() {
        let piece = |text: &str, hit| SnippetFragment { text: text.to_owned(), hit };
        let text = "by the old keeper of the light who kept it for forty years and never left ";
        let snippet =
            [piece(text, false), piece("the island", true), piece(" again\u{1b}[2J", false)];
        let narrow = HitStyle { is_bold: true, columns: Some(40) };
        let lines = snippet_lines(&snippet, narrow);
        assert_eq!(
            lines,
            [
                "    by the old keeper of the light who",
                "    kept it for forty years and never",
                "    left \u{1b}[1mthe island\u{1b}[0m again\\u{1b}[2J",
            ]
        );
        let piped = HitStyle { is_bold: false, columns: None };
        assert_eq!(snippet_lines(&snippet, piped).len(), 1, "a script gets one line");
    }
}
