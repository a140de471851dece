//! `driftline extract`: reads one document, in a process that can do nothing else (T30).
//!
//! The crawl starts it for every document that is neither HTML nor text; it is no verb for
//! people. It takes rights away from itself before it reads a byte. Invariants: it gets no
//! more memory and processor time than the limits say, opens no file and no connection,
//! starts no process, leaves nothing behind, and ends with whoever started it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use crawl::extract::{CPU_S_MAX, Extractor, MEMORY_BYTES_MAX, Program};
use page::extract::DOCUMENT_BYTES_MAX;
use page::sniff::kind_of;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

/// This program, even when its file has been replaced by a newer one meanwhile.
const SELF: &str = "/proc/self/exe";
/// Its pipes are open, and nothing else can be opened: neither a file nor a connection.
const FILES_MAX: u64 = 3;

/// Read a document from standard input and answer in JSON, to a pipe: it can write no file
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The document's media type, such as application/pdf
    media_type: String,
}

/// What reads documents for a crawl: this program.
pub fn extractor() -> Extractor {
    let path = match Path::new(SELF).exists() {
        true => PathBuf::from(SELF),
        false => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("driftline")),
    };
    // A media type may begin with a hyphen, and is no flag.
    let arguments = ["extract", "--"].map(str::to_owned).into();
    Extractor::new(Program { path, arguments })
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    limit().context("this process cannot be limited")?;
    // A panic of a library is an answer, and said there.
    std::panic::set_hook(Box::new(|_| ()));
    let mut document = Vec::new();
    let most = DOCUMENT_BYTES_MAX as u64 + 1;
    std::io::stdin().take(most).read_to_end(&mut document).context("cannot read the document")?;
    let read = page::extract::extract(kind_of(&args.media_type), &document);
    super::print_whole(&serde_json::to_vec(&read)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes rights away from this process; none of them comes back.
fn limit() -> rustix::io::Result<()> {
    let most = |resource, limit: u64| {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
    };
    most(Resource::As, MEMORY_BYTES_MAX)?;
    most(Resource::Fsize, 0)?;
    most(Resource::Core, 0)?;
    most(Resource::Nproc, 0)?;
    most(Resource::Nofile, FILES_MAX)?;
    // The first signal says why; one second later comes the one that cannot be handled.
    let cpu = Rlimit { current: Some(CPU_S_MAX), maximum: Some(CPU_S_MAX + 1) };
    setrlimit(Resource::Cpu, cpu)?;
    set_parent_process_death_signal(Some(Signal::KILL))
}
