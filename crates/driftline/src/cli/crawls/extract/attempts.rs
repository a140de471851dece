//! Whether the walls of a reader hold: a process of the same kind is started, raises them as for
//! a document, and tries what it must not be able to do.
//!
//! `driftline doctor` asks, and so do the tests. Each attempt has a process of its own, because
//! the system ends those that go too far. Invariant: only what was really tried and refused
//! counts as refused.

use super::walls::{self, Purpose, Walls};
use anyhow::{Context, bail};
use clap::ValueEnum;
use nix::libc;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long a process may take for its attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Something that everybody may open.
const ROOT: &str = "/";
/// A port of this machine.
const PORT: u16 = 9;
/// A program that is surely there: this one.
const SELF: &str = "/proc/self/exe";

/// What a reader must not be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    /// Open a file
    OpenFile,
    /// Connect to another process
    Connect,
    /// Start a process
    StartProcess,
    /// Become another program
    RunProgram,
}

impl Attempt {
    pub const ALL: [Attempt; 4] =
        [Attempt::OpenFile, Attempt::Connect, Attempt::StartProcess, Attempt::RunProgram];

    pub fn words(self) -> &'static str {
        match self {
            Attempt::OpenFile => "open files",
            Attempt::Connect => "open connections",
            Attempt::StartProcess => "start processes",
            Attempt::RunProgram => "run programs",
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned())
    }

    fn make(self) -> io::Result<()> {
        match self {
            Attempt::OpenFile => File::open(ROOT).map(drop),
            // Whether somebody listens there is not the question.
            Attempt::Connect => match TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
                asked => asked.map(drop),
            },
            Attempt::StartProcess => {
                let mut child = Command::new(SELF).arg("--version").spawn()?;
                child.wait().map(drop)
            }
            Attempt::RunProgram => Err(Command::new(SELF).arg("--version").exec()),
        }
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The system said no, in these words.
    Refused(String),
    /// The system ended the process for it.
    Ended,
    /// Nothing kept it from doing it.
    Done,
}

/// An attempt, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptResult {
    pub attempt: Attempt,
    /// What came of it.
    pub outcome: AttemptOutcome,
}

/// What is known of the readers of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confinement {
    /// The walls that stand.
    pub walls: Walls,
    /// What was tried inside them.
    pub attempts: Vec<AttemptResult>,
}

/// Starts readers that try everything, and says what came of it.
pub fn look() -> anyhow::Result<Confinement> {
    let mut found = None;
    let mut attempts = Vec::new();
    for attempt in Attempt::ALL {
        let (walls, outcome) = ask(attempt)?;
        attempts.push(AttemptResult { attempt, outcome });
        found = Some(walls);
    }
    let walls = found.context("nothing was tried")?;
    Ok(Confinement { walls, attempts })
}

/// One reader and one attempt.
fn ask(attempt: Attempt) -> anyhow::Result<(Walls, AttemptOutcome)> {
    let mut child = Command::new(crate::cli::crawls::extract::program())
        .args(["extract", "--attempt", &attempt.name()])
        .env_clear()
        .current_dir(ROOT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("it cannot be started")?;
    let stdout = child.stdout.take().context("it has no pipe")?;
    let (sender, answer) = sync_channel(1);
    let reading = std::thread::Builder::new().name("attempt".into()).spawn(move || {
        let mut said = String::new();
        let read = stdout.take(ANSWER_BYTES_MAX).read_to_string(&mut said);
        let _ = sender.send(read.map(|_| said));
    })?;
    let said = answer.recv_timeout(PATIENCE);
    if said.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    let said = said.context("it did not answer in time")??;
    let _ = reading.join();
    let mut lines = said.lines();
    let walls = lines.next().context("it did not answer")?;
    let walls = serde_json::from_str(walls).context("it answered something else")?;
    let outcome = match (status.signal(), lines.next()) {
        (Some(libc::SIGSYS), _) => AttemptOutcome::Ended,
        // What is not its own word is that of a program that it started.
        (None, Some(outcome)) => serde_json::from_str(outcome).unwrap_or(AttemptOutcome::Done),
        (signal, _) => bail!("it ended without an answer (signal {signal:?})"),
    };
    Ok((walls, outcome))
}

/// Is such a reader.
pub fn run(attempt: Attempt) -> anyhow::Result<ExitCode> {
    let walls = walls::raise(Purpose::Looking).context("this process cannot be limited")?;
    crate::cli::say(&serde_json::to_string(&walls)?);
    let outcome = match attempt.make() {
        Err(error) => AttemptOutcome::Refused(error.to_string()),
        Ok(()) => AttemptOutcome::Done,
    };
    crate::cli::say(&serde_json::to_string(&outcome)?);
    Ok(ExitCode::SUCCESS)
}
