//! What the program prints, held as a whole: every screen and every answer in JSON is a file in
//! `screens/snapshots`, so that a change of words or columns shows as a difference.
//!
//! Relies on a directory that two crawls of the demo's web have filled; each test has a copy
//! of it ([`crawled`]). Invariant: what differs from run to run (times, ids, sizes, paths) is
//! replaced before it is compared ([`redacted`]). CONTRIBUTING.md says how a changed screen is
//! accepted.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod administration;
mod crawled;
mod data;
mod help;
mod jobs;
mod links;
mod redacted;

use std::path::Path;
use std::process::{Command, Stdio};

pub use redacted::Varying;
use redacted::{redacted, redacted_json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_driftline");
/// Columns of the terminal that help is written for.
const COLUMNS: &str = "100";
const SNAPSHOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/screens/snapshots");

/// What commands printed, one after the other.
struct Screens<'a> {
    data: &'a Path,
    varying: Varying,
    shown: String,
}

impl<'a> Screens<'a> {
    /// Of commands on a data directory.
    fn of(data: &'a Path) -> Screens<'a> {
        Screens { data, varying: Varying::default(), shown: String::new() }
    }

    /// Of commands that also print something else that is not the same in every run.
    fn varying(self, varying: Varying) -> Screens<'a> {
        Screens { varying, ..self }
    }

    /// Runs a command and adds what it printed, for people and in JSON.
    fn both(&mut self, args: &[&str]) -> &mut Self {
        self.text(args).json(args)
    }

    /// Runs a command and adds what it printed.
    fn text(&mut self, args: &[&str]) -> &mut Self {
        let printed = self.run(args);
        let printed = redacted(&printed, self.data, self.varying);
        self.add(args, &printed)
    }

    /// The same, for lines that come in no particular order.
    fn sorted(&mut self, args: &[&str]) -> &mut Self {
        let printed = redacted(&self.run(args), self.data, self.varying);
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        self.add(args, &format!("{}\n", lines.join("\n")))
    }

    /// Runs a command and adds its answer in JSON.
    fn json(&mut self, args: &[&str]) -> &mut Self {
        let args = [args, &["--json"]].concat();
        let printed = redacted_json(&self.run(&args), self.data, self.varying);
        self.add(&args, &printed)
    }

    /// Runs a command. What it printed as an error stands behind its answer, with the exit code.
    fn run(&self, args: &[&str]) -> String {
        let mut command = command(args);
        let output = command.arg("--data").arg(self.data).output().unwrap();
        let mut printed = String::from_utf8(output.stdout).unwrap();
        printed.push_str(&String::from_utf8(output.stderr).unwrap());
        match output.status.code().unwrap() {
            0 => printed,
            code => format!("{printed}(exit code {code})\n"),
        }
    }

    fn add(&mut self, args: &[&str], printed: &str) -> &mut Self {
        let gap = if self.shown.is_empty() { "" } else { "\n" };
        let line: Vec<String> = args.iter().map(|word| quoted(word)).collect();
        let line = redacted(&line.join(" "), self.data, Varying::default());
        self.shown.push_str(&format!("{gap}$ driftline {line}\n{printed}"));
        self
    }

    /// Compares it with the file of this name.
    #[track_caller]
    fn hold(&self, name: &str) {
        hold(name, &self.shown);
    }
}

/// The program with these arguments, and nothing of the environment that changes what it prints.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).stdin(Stdio::null()).env("COLUMNS", COLUMNS).env("TZ", "UTC");
    for name in
        ["DRIFTLINE_DATA", "DRIFTLINE_SECRETS_KEY", "DRIFTLINE_TOKEN", "NO_COLOR", "CLICOLOR_FORCE"]
    {
        command.env_remove(name);
    }
    command
}

/// Compares a text with the snapshot of this name.
#[track_caller]
fn hold(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(SNAPSHOTS);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Compares what somebody else printed with the snapshot of this name.
#[track_caller]
pub fn hold_redacted(name: &str, printed: &str, data: &Path, varying: Varying) {
    hold(name, &redacted(printed, data, varying));
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|it| it.is_ascii_alphanumeric() || "-_./:,=".contains(it));
    if is_plain { word.to_owned() } else { format!("'{word}'") }
}
