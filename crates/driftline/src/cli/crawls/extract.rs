//! `driftline extract`: reads one document, in a process that can do nothing else.
//!
//! The crawl starts it for every document that is neither HTML nor text; it is no verb for
//! people. It takes rights away from itself before it reads a byte. Invariants: it gets no
//! more memory and processor time than the limits say, opens no file and no connection,
//! starts no process, leaves nothing behind, and ends with whoever started it.

pub mod attempts;
mod system_calls;
pub mod walls;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use attempts::Attempt;
use crawl::extract::{Extractor, Program};
use page::extract::DOCUMENT_BYTES_MAX;
use page::sniff::kind_of;
use walls::Purpose;

/// This program, even when its file has been replaced by a newer one meanwhile.
const SELF: &str = "/proc/self/exe";

/// Read a document from standard input and answer in JSON, to a pipe: it can write no file
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The document's media type, such as application/pdf
    #[arg(required_unless_present = "attempt")]
    media_type: Option<String>,
    /// Read nothing, and try instead what a reader must not be able to do
    #[arg(long, value_enum, conflicts_with = "media_type")]
    attempt: Option<Attempt>,
}

/// What reads documents for a crawl: this program.
pub fn extractor() -> Extractor {
    // A media type may begin with a hyphen, and is no flag.
    let arguments = ["extract", "--"].map(str::to_owned).into();
    Extractor::new(Program { path: program(), arguments })
}

fn program() -> PathBuf {
    match Path::new(SELF).exists() {
        true => PathBuf::from(SELF),
        false => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("driftline")),
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(attempt) = args.attempt {
        return attempts::run(attempt);
    }
    walls::raise(Purpose::Reading).context("this process cannot be limited")?;
    // A panic of a library is an answer, and said there.
    std::panic::set_hook(Box::new(|_| ()));
    let mut document = Vec::new();
    let most = DOCUMENT_BYTES_MAX as u64 + 1;
    std::io::stdin().take(most).read_to_end(&mut document).context("cannot read the document")?;
    let read = page::extract::extract(kind_of(&args.media_type.unwrap_or_default()), &document);
    crate::cli::print_whole(&serde_json::to_vec(&read)?)?;
    Ok(ExitCode::SUCCESS)
}
