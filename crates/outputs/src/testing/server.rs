//! A small HTTP server for tests: requests with bodies, and answers that may be bad.
//!
//! Invariant: a dropped server has closed its port and all its connections.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Bytes of a body that is read.
const BODY_BYTES_MAX: usize = 256 << 20;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Request {
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }

    /// The path alone.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A value of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let query = self.target.split_once('?')?.1;
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|it| it.0 == name).map(|it| it.1.into_owned())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reply {
    Full {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Half of an answer, then nothing.
    Half,
    /// Nothing at all.
    Close,
}

impl Reply {
    /// JSON.
    pub fn json(status: u16, body: &serde_json::Value) -> Reply {
        let headers = vec![("content-type", "application/json".to_owned())];
        Reply::Full { status, headers, body: body.to_string() }
    }

    /// A status alone.
    pub fn status(status: u16) -> Reply {
        Reply::Full { status, headers: Vec::new(), body: String::new() }
    }

    /// The same with another header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        if let Reply::Full { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server that is there until it is dropped.
pub struct Server {
    port: u16,
    is_over: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves at a free port.
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::at(0, handler)
    }

    /// Serves at a port.
    pub fn at(port: u16, handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let handler: Arc<Handler> = Arc::new(handler);
        Server::serving(port, move |stream| {
            let _ = serve(&stream, &*handler);
        })
    }

    /// Serves whatever protocol at a port, a thread for each connection.
    pub fn serving(port: u16, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (over, streams, serve) = (is_over.clone(), open.clone(), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                streams.lock().unwrap().push(stream.try_clone().unwrap());
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
        Server { port, is_over, open, thread: Some(thread) }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(stream: &TcpStream, handler: &Handler) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream.try_clone()?;
    while let Some(request) = read(&mut reader)? {
        let reply = handler(&request);
        let Reply::Full { status, headers, body } = reply else {
            if reply == Reply::Half {
                writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"took\":")?;
            }
            return stream.shutdown(Shutdown::Both);
        };
        let mut head = format!("HTTP/1.1 {status} Word\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        writer.write_all(format!("{head}\r\n{body}").as_bytes())?;
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers: Vec<(String, String)> = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|it| it.0 == "content-length");
    let length = length.map_or(0, |it| it.1.parse::<usize>().unwrap());
    assert!(length <= BODY_BYTES_MAX, "{length} bytes");
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, target, headers, body }))
}
