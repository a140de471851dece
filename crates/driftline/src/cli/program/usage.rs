//! Command lines that cannot be understood: what is said of them, and how.
//!
//! Invariants: whoever asks for JSON reads failures of every kind as JSON; a number that is
//! none is answered in our words, not in those of a parser.

use crate::cli::TROUBLE;
use crate::stderr;
use clap::error::ErrorKind;
use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

/// Answers a command line that was not run: with help that was asked for, or with what is
/// wrong.
pub fn answer(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let ours = words(error);
    match (is_json(), ours) {
        (true, ours) => {
            let text = ours.unwrap_or_else(|| error.render().to_string());
            stderr::line(&serde_json::json!({"error": one_line(&text)}).to_string());
        }
        (false, Some(text)) => stderr::line(text.trim_end_matches('\n')),
        (false, None) => drop(error.print()),
    }
    ExitCode::from(TROUBLE)
}

/// Whether answers are asked for as JSON, however the rest of the line is to be read.
pub fn is_json() -> bool {
    std::env::args_os().take_while(|it| it != "--").any(|argument| argument == "--json")
}

/// The whole message, with our words for what a parser says of a number.
fn words(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let source = error.source()?;
    let ours = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "the number is too large",
        Some(IntErrorKind::NegOverflow) => "the number is too small",
        Some(_) => "give a whole number, such as 10",
        None if source.is::<ParseFloatError>() => "give a number, such as 0.5",
        None => return None,
    };
    Some(error.render().to_string().replace(&source.to_string(), ours))
}

/// A message as one line, without the word in front and the hint behind.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_hint = |line: &str| line.starts_with("Usage: ") || line.starts_with("For more info");
    let lines: Vec<&str> = lines.filter(|line| !is_hint(line)).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct UsageCommand {
        #[arg(long)]
        share: Option<f64>,
        #[arg(long)]
        pages: Option<i64>,
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=9))]
        parts: Option<u32>,
    }

    fn said(args: &[&str]) -> String {
        let line = [&["driftline"], args].concat();
        let error = UsageCommand::try_parse_from(line).unwrap_err();
        one_line(&words(&error).unwrap_or_else(|| error.render().to_string()))
    }

    #[test]
    fn a_number_that_is_none_is_answered_in_our_words() {
        let float = said(&["--share", "x"]);
        assert_eq!(float, "invalid value 'x' for '--share <SHARE>': give a number, such as 0.5");
        assert!(said(&["--pages", "many"]).ends_with("give a whole number, such as 10"));
        assert!(said(&["--parts", ""]).ends_with("give a whole number, such as 10"));
        assert!(said(&["--pages", "99999999999999999999"]).ends_with("the number is too large"));
        assert!(said(&["--parts", "10"]).contains("1..=9"), "a range has its own words");
    }
}
