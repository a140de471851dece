//! The local socket in a data directory: how other commands ask the process that
//! holds it.
//!
//! One question and one answer a connection, each a length and that many bytes of
//! JSON. Invariants: a question and an answer are bounded in size and time; a slow
//! or broken asker costs one of a few threads for a few seconds, never the process;
//! only the owner of the data directory can connect.

use crate::datadir::Layout;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a question: a whole document of definitions fits.
const QUESTION_BYTES_MAX: usize = 8 << 20;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Askers served at once; more are turned away with a word.
const ASKERS_MAX: usize = 16;
/// An asker that sends or takes nothing for this long is dropped.
const STALL: Duration = Duration::from_secs(10);
/// How long an answer may take to be computed, as the asker sees it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a process that ends waits for answers that are under way.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// The wait before it looks again.
const GLANCE: Duration = Duration::from_millis(5);
/// The longest path the operating system takes for a socket.
const PATH_BYTES_MAX: usize = 100;

/// What is asked: a verb of the command line and its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SocketRequest {
    pub verb: String,
    #[serde(default)]
    pub args: Json,
}

/// What the holder says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SocketResponse {
    Ok(Json),
    Error(String),
}

/// Computes answers. It runs on the socket's threads.
pub type SocketHandler = dyn Fn(SocketRequest) -> std::result::Result<Json, String> + Send + Sync;

/// The listening end. Dropping it stops it and removes the socket.
pub struct SocketListener {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Listens in a data directory that this process holds.
pub fn listen(layout: &Layout, answering: Arc<SocketHandler>) -> Result<SocketListener> {
    let path = layout.socket();
    // We hold the directory, so a socket that is there belonged to a dead process.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(&path, error)),
        _ => {}
    }
    let listener = with_short_path(&path, |short| UnixListener::bind(short))
        .map_err(|error| Error::io(&path, error))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| Error::io(&path, error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::Builder::new()
        .name("socket".into())
        .spawn({
            let stop = stop.clone();
            move || accept(&listener, &answering, &stop)
        })
        .map_err(|error| Error::io(&path, error))?;
    Ok(SocketListener { path, stop, thread: Some(thread) })
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A last connection of our own wakes the accepting thread.
        let _ = with_short_path(&self.path, |short| UnixStream::connect(short));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, answering: &Arc<SocketHandler>, stop: &AtomicBool) {
    let busy = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if stop.load(Ordering::SeqCst) {
            return finish(&busy);
        }
        let Ok(mut stream) = stream else { continue };
        if busy.fetch_add(1, Ordering::SeqCst) >= ASKERS_MAX {
            busy.fetch_sub(1, Ordering::SeqCst);
            let answer = SocketResponse::Error(format!(
                "{ASKERS_MAX} commands are being answered; try again"
            ));
            let _ = timed(&stream).and_then(|()| send(&mut stream, &answer));
            continue;
        }
        let (answering, working) = (answering.clone(), busy.clone());
        let spawned = std::thread::Builder::new().name("answer".into()).spawn(move || {
            let _ = serve(&mut stream, answering.as_ref());
            working.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            busy.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Lets answers that are under way come to their end: one may be a change, and its asker
/// should hear of it.
fn finish(busy: &AtomicUsize) {
    let since = std::time::Instant::now();
    while busy.load(Ordering::SeqCst) > 0 && since.elapsed() < LAST_ANSWERS {
        std::thread::park_timeout(GLANCE);
    }
}

fn serve(stream: &mut UnixStream, answering: &SocketHandler) -> std::io::Result<()> {
    timed(stream)?;
    let question = receive(stream, QUESTION_BYTES_MAX)?;
    let answer = match serde_json::from_slice::<SocketRequest>(&question) {
        Ok(question) => match answering(question) {
            Ok(json) => SocketResponse::Ok(json),
            Err(reason) => SocketResponse::Error(reason),
        },
        Err(error) => SocketResponse::Error(format!("the question cannot be read: {error}")),
    };
    send(stream, &answer)
}

/// Asks the process that holds the data directory. `None` when nobody does.
pub fn ask(layout: &Layout, question: &SocketRequest) -> Result<Option<Json>> {
    let path = layout.socket();
    let failed = |error: std::io::Error| Error::Unavailable {
        what: format!("the process that holds {}", layout.root().display()),
        reason: error.to_string(),
    };
    let mut stream = match with_short_path(&path, |short| UnixStream::connect(short)) {
        Ok(stream) => stream,
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(STALL)).map_err(failed)?;
    let answered =
        send(&mut stream, question).and_then(|()| receive(&mut stream, ANSWER_BYTES_MAX));
    let bytes = match answered {
        // It has ended while it was asked: nobody holds the directory any more.
        Err(error) if has_hung_up(&error) => return Ok(None),
        answered => answered.map_err(failed)?,
    };
    match serde_json::from_slice(&bytes) {
        Ok(SocketResponse::Ok(json)) => Ok(Some(json)),
        Ok(SocketResponse::Error(reason)) => Err(Error::Refused(reason)),
        Err(error) => Err(failed(error.into())),
    }
}

fn has_hung_up(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof
    )
}

fn timed(stream: &UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))
}

fn send(stream: &mut UnixStream, message: &impl Serialize) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let length = u32::try_from(bytes.len())
        .map_err(|_| std::io::Error::new(ErrorKind::InvalidData, "the message is too long"))?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(&bytes)
}

fn receive(stream: &mut UnixStream, bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > bytes_max {
        let message = format!("a message of {length} bytes is over the limit of {bytes_max}");
        return Err(std::io::Error::new(ErrorKind::InvalidData, message));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Sockets have short paths only. A deep data directory is reached through the
/// descriptor of the directory itself, where the system has `/proc`.
fn with_short_path<T>(
    path: &Path,
    run: impl FnOnce(&Path) -> std::io::Result<T>,
) -> std::io::Result<T> {
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return run(path);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return run(path) };
    let directory = std::fs::File::open(parent)?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    run(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> (tempfile::TempDir, Layout) {
        let place = tempfile::tempdir().unwrap();
        let layout = Layout::new(place.path());
        (place, layout)
    }

    fn echo(layout: &Layout) -> SocketListener {
        let answering = |question: SocketRequest| match question.verb.as_str() {
            "echo" => Ok(question.args),
            verb => Err(format!("there is no verb {verb:?}")),
        };
        listen(layout, Arc::new(answering)).unwrap()
    }

    fn question(verb: &str, args: Json) -> SocketRequest {
        SocketRequest { verb: verb.into(), args }
    }

    #[test]
    fn nobody_answers_until_somebody_listens() {
        let (_place, layout) = layout();
        assert_eq!(ask(&layout, &question("echo", Json::Null)).unwrap(), None);
        let listening = echo(&layout);
        let args = serde_json::json!({"a": [1, "ü"]});
        assert_eq!(ask(&layout, &question("echo", args.clone())).unwrap(), Some(args));
        let refused = ask(&layout, &question("dance", Json::Null)).unwrap_err().to_string();
        assert_eq!(refused, "there is no verb \"dance\"");
        drop(listening);
        assert_eq!(ask(&layout, &question("echo", Json::Null)).unwrap(), None);
    }

    #[test]
    fn a_socket_left_by_a_dead_process_is_replaced() {
        let (_place, layout) = layout();
        drop(UnixListener::bind(layout.socket()).unwrap());
        assert_eq!(ask(&layout, &question("echo", Json::Null)).unwrap(), None);
        let _listening = echo(&layout);
        assert!(ask(&layout, &question("echo", Json::Null)).unwrap().is_some());
    }

    #[test]
    fn a_process_that_dies_while_it_is_asked_is_nobody() {
        let (_place, layout) = layout();
        let listener = UnixListener::bind(layout.socket()).unwrap();
        let dying = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1]);
        });
        assert_eq!(ask(&layout, &question("echo", Json::Null)).unwrap(), None);
        dying.join().unwrap();
    }

    #[test]
    fn an_answer_that_is_under_way_is_given_before_the_listener_ends() {
        let (_place, layout) = layout();
        let (begun, is_begun) = std::sync::mpsc::sync_channel(1);
        let (end, may_end) = std::sync::mpsc::sync_channel::<()>(1);
        let may_end = std::sync::Mutex::new(may_end);
        let answering = move |question: SocketRequest| {
            begun.send(()).unwrap();
            may_end.lock().unwrap().recv().unwrap();
            Ok(question.args)
        };
        let listening = listen(&layout, Arc::new(answering)).unwrap();
        let asking = layout.clone();
        let asker = std::thread::spawn(move || ask(&asking, &question("echo", Json::Null)));
        is_begun.recv().unwrap();
        let stop = listening.stop.clone();
        let ender = std::thread::spawn(move || drop(listening));
        while !stop.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        end.send(()).unwrap();
        assert_eq!(asker.join().unwrap().unwrap(), Some(Json::Null));
        ender.join().unwrap();
    }

    #[test]
    fn a_question_that_is_too_long_or_no_json_hurts_nobody_else() {
        let (_place, layout) = layout();
        let _listening = echo(&layout);
        let mut long = UnixStream::connect(layout.socket()).unwrap();
        long.write_all(&u32::MAX.to_be_bytes()).unwrap();
        assert_eq!(long.read(&mut [0; 4]).unwrap(), 0, "the connection is closed");
        let mut garbage = UnixStream::connect(layout.socket()).unwrap();
        garbage.write_all(&[0, 0, 0, 2, b'{', b'{']).unwrap();
        let answer = receive(&mut garbage, ANSWER_BYTES_MAX).unwrap();
        assert!(String::from_utf8(answer).unwrap().contains("cannot be read"));
        assert!(ask(&layout, &question("echo", Json::Null)).unwrap().is_some());
    }

    #[test]
    fn a_deep_directory_has_a_socket_too() {
        let (place, _) = layout();
        let deep = place.path().join("d".repeat(80)).join("e".repeat(80));
        std::fs::create_dir_all(&deep).unwrap();
        let layout = Layout::new(deep);
        let _listening = echo(&layout);
        assert!(ask(&layout, &question("echo", Json::Null)).unwrap().is_some());
    }
}
