//! What the steps of the demo share: the web, the data directory, what the crawls found
//! so far, and how it is told.
//!
//! Invariants: in JSON there is one answer, at the end; a directory that is not to be kept
//! is gone when the demo is over, however it ends; one that is there already is not
//! touched.

use super::round::Round;
use crate::cli::say;
use crate::demo_site::DemoSite;
use crate::place::OpenPlace;
use crate::text::{quoted, shown};
use crate::verbs::access::Asker;
use crate::verbs::{self, Verb};
use anyhow::Context;
use serde_json::{Map, Value as Json};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::tables::settings;
use tempfile::TempDir;

/// Columns that a line should fit into.
const COLUMNS: usize = 80;

pub struct DemoStage {
    /// The data directory. It is closed before it goes.
    pub held: OpenPlace,
    pub site: DemoSite,
    /// The crawls so far.
    pub rounds: Vec<Round>,
    /// Where the directory is kept, if it is.
    pub kept: Option<PathBuf>,
    stopped: Arc<AtomicBool>,
    json: Option<Map<String, Json>>,
    folder: Option<TempDir>,
}

impl DemoStage {
    /// Serves the web and makes the directory.
    pub fn open(keep: Option<PathBuf>, json: bool) -> anyhow::Result<DemoStage> {
        // From now on, so that the directory is taken away whenever it comes.
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, stopped.clone())?;
        }
        let folder = match &keep {
            Some(kept) => {
                refuse_used(kept)?;
                None
            }
            None => Some(
                tempfile::Builder::new()
                    .prefix("driftline-demo-")
                    .tempdir()
                    .context("cannot make a temporary directory; name one with --keep")?,
            ),
        };
        let root = match (&keep, &folder) {
            (Some(kept), _) => kept.clone(),
            (None, Some(folder)) => folder.path().join("data"),
            (None, None) => unreachable!("without --keep there is a folder"),
        };
        let site = DemoSite::start().context("cannot serve the demo's web on 127.0.0.1")?;
        Ok(DemoStage {
            held: OpenPlace::open(&root, settings::PARTS_DEFAULT)?,
            site,
            rounds: Vec::new(),
            kept: keep,
            stopped,
            json: json.then(Map::new),
            folder,
        })
    }

    /// Whether somebody asked to stop. A crawl that is under way has heard of it, too.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Whether the answer is in JSON, and nothing else is printed.
    pub fn is_quiet(&self) -> bool {
        self.json.is_some()
    }

    /// Tells people a line.
    pub fn say(&self, line: &str) {
        if self.json.is_none() {
            say(line);
        }
    }

    /// Begins a part of the story.
    pub fn title(&self, line: &str) {
        self.say("");
        self.say(line);
    }

    /// Tells people a line, on as many as it takes.
    pub fn wrapped(&self, line: &str) {
        wrap(line).iter().for_each(|line| self.say(line));
    }

    pub fn record(&mut self, name: &str, value: Json) {
        if let Some(answer) = &mut self.json {
            answer.insert(name.to_owned(), value);
        }
    }

    /// Asks a verb, as its command would.
    pub fn ask<V: Verb>(&self, request: V::Request) -> anyhow::Result<V::Response> {
        verbs::answer::<V>(&self.held.context("demo"), Asker::CommandLine, request)
    }

    /// Text with URLs as the story shows them: all hosts have one port, and none has TLS.
    pub fn short(&self, text: &str) -> String {
        let port = format!(":{}/", self.site.web().port());
        shown(&text.replace("http://", "").replace(&port, "/"))
    }

    /// The flags that name the directory in a command, if it is kept.
    pub fn flags(&self) -> String {
        match &self.kept {
            Some(kept) => format!(" --data {}", quoted(&kept.display().to_string())),
            None => String::new(),
        }
    }

    /// Ends the demo: gives the answer and takes away what is not kept.
    pub fn close(self) -> anyhow::Result<ExitCode> {
        let is_stopped = self.is_stopped();
        let DemoStage { held, site, json, folder, .. } = self;
        drop(site);
        drop(held);
        if let Some(folder) = folder {
            let name = shown(&folder.path().display().to_string());
            folder.close().with_context(|| format!("cannot remove {name}"))?;
        }
        if is_stopped {
            return Ok(ExitCode::FAILURE);
        }
        if let Some(answer) = json {
            say(&Json::Object(answer).to_string());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A line on as many as it takes; all of them begin where it begins.
fn wrap(line: &str) -> Vec<String> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let mut lines = vec![indent.to_owned()];
    for word in text.split_inclusive(' ') {
        let last = lines.last_mut().expect("there is the first");
        let width = last.chars().count() + word.trim_end().chars().count();
        if width > COLUMNS && last.len() > indent.len() {
            last.truncate(last.trim_end().len());
            lines.push(format!("{indent}{word}"));
        } else {
            last.push_str(word);
        }
    }
    lines
}

/// The demo's directory is a new one: its crawls would mean nothing beside others.
fn refuse_used(kept: &Path) -> anyhow::Result<()> {
    let is_used = match std::fs::read_dir(kept) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(_) => true,
    };
    anyhow::ensure!(
        !is_used,
        "{} is there already and is not an empty directory; name a new one with --keep",
        shown(&kept.display().to_string())
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_told_on_several_that_begin_where_it_begins() {
        assert_eq!(wrap("  a  b"), ["  a  b"], "what fits stays as it is");
        let (word, url) = ("x".repeat(39), "u".repeat(100));
        let lines = wrap(&format!("  {word} {word} {url} {word}"));
        let expected = [&word, &word, &url, &word].map(|it| format!("  {it}"));
        assert_eq!(lines, expected, "a word is never broken");
        assert_eq!(wrap(&format!("{word} {word}")).len(), 1, "79 columns");
    }

    #[test]
    fn a_directory_that_is_in_use_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refuse_used(folder.path()).is_ok(), "an empty one is");
        assert!(refuse_used(&folder.path().join("new")).is_ok());
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for used in [folder.path(), &file] {
            let error = refuse_used(used).unwrap_err().to_string();
            assert!(error.contains("--keep"), "{error}");
        }
    }
}
