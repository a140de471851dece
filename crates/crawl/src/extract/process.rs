//! One process that reads one document.
//!
//! Relies on the process to limit itself, and on nothing that it says. Invariants: it gets no
//! environment and no file but its three pipes; what it writes is read to a limit; it is
//! killed when its time is over, and when nobody waits for it any more.

use super::{ExtractResult, MEMORY_BYTES_MAX, Program, Unread};
use page::bytesize::human_bytes_of;
use page::extract::{REPLY_BYTES_MAX, reply};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The signal of one that made a system call which reading does not need.
const SIGSYS: i32 = 31;
/// What is kept of its messages.
const MESSAGE_BYTES_MAX: u64 = 4_096;
/// How long a process that was killed is waited for; after that nobody does.
const GONE: Duration = Duration::from_secs(1);
/// The signal of one that has used its processor time.
const SIGXCPU: i32 = 24;
/// The signal of one that the system has killed.
const SIGKILL: i32 = 9;

/// Has a document of a media type read.
pub(super) async fn read(
    program: &Program,
    media_type: &str,
    document: &[u8],
    wall: Duration,
) -> ExtractResult {
    let mut child = match start(program, media_type) {
        Ok(child) => child,
        Err(error) => return Err(not_started(&error.to_string())),
    };
    let ended = match tokio::time::timeout(wall, exchange(&mut child, document)).await {
        Ok(ended) => ended,
        Err(_) => Err(Unread::new(
            "unread-time",
            format!("reading it takes longer than {}", words_of(wall)),
        )),
    };
    if ended.is_err() {
        // Dropped, it would be killed too, but not waited for.
        let _ = child.start_kill();
        let _ = tokio::time::timeout(GONE, child.wait()).await;
    }
    result_of(ended?)
}

fn start(program: &Program, media_type: &str) -> std::io::Result<Child> {
    Command::new(&program.path)
        .args(&program.arguments)
        .arg(media_type)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// How a process ended.
struct ProcessEnd {
    status: ExitStatus,
    output: Vec<u8>,
    message: String,
}

/// Hands the document over and takes the answer.
async fn exchange(child: &mut Child, document: &[u8]) -> Result<ProcessEnd, Unread> {
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_started("it has no pipes"));
    };
    let hand_over = async {
        // It may have seen enough, or be gone: what it says tells.
        let _ = stdin.write_all(document).await;
        drop(stdin);
    };
    let most = REPLY_BYTES_MAX as u64 + 1;
    let message = async {
        let message = beginning(&mut stderr, MESSAGE_BYTES_MAX).await;
        // The rest is thrown away, so that it never waits for a reader.
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        message
    };
    let answer = async {
        let output = beginning(&mut stdout, most).await;
        let is_long = output.len() as u64 == most;
        // Without its reader it cannot go on writing.
        drop(stdout);
        (output, is_long)
    };
    let ((), (output, is_long), message) = tokio::join!(hand_over, answer, message);
    let message = String::from_utf8_lossy(&message).into_owned();
    if is_long {
        return Err(Unread::new("unread-crash", "the output of its reader was too long"));
    }
    let status = child.wait().await.map_err(|error| not_started(&error.to_string()))?;
    Ok(ProcessEnd { status, output, message })
}

async fn beginning(pipe: &mut (impl AsyncRead + Unpin), most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came before it broke is all there is.
    let _ = pipe.take(most).read_to_end(&mut bytes).await;
    bytes
}

/// What a process that has ended comes to.
fn result_of(ProcessEnd { status, output, message }: ProcessEnd) -> ExtractResult {
    if status.success() {
        let output = reply(&output);
        let no_answer = || Unread::new("unread-crash", "its reader gave no usable output");
        return output.ok_or_else(no_answer)?.map_err(Unread::from);
    }
    let has_overflowed = message.contains("has overflowed its stack");
    let is_memory = message.contains("memory allocation of");
    Err(match (status.signal(), status.code()) {
        (Some(SIGXCPU), _) => Unread::new("unread-time", "reading it takes too much time"),
        (Some(SIGSYS), _) => {
            let reason = "its reader made a forbidden system call (such as to start a program or \
                 open a connection, as an exploit does) and was stopped";
            Unread::new("unread-forbidden", reason)
        }
        (Some(_), _) if has_overflowed => {
            Unread::new("unread-memory", "its parts are nested too deeply")
        }
        (Some(SIGKILL), _) => {
            Unread::new("unread-memory", "its reader was killed by the system, for lack of memory")
        }
        (Some(_), _) if is_memory => {
            let most = human_bytes_of(MEMORY_BYTES_MAX);
            Unread::new("unread-memory", format!("reading it takes more than {most} of memory"))
        }
        (Some(signal), _) => {
            Unread::new("unread-crash", format!("its reader failed on it (signal {signal})"))
        }
        (None, _) => not_started(message.lines().next().unwrap_or("it said nothing")),
    })
}

/// The reader is to blame, not the document.
fn not_started(reason: &str) -> Unread {
    let detail = format!("its reader could not work: {}", page::text::collapse(reason, 200));
    Unread { passes: true, ..Unread::new("unread-program", detail) }
}

fn words_of(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} s"),
    }
}
