//! A server that reads requests and says what a script tells it to.

use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What the server does for one request.
pub struct Reply {
    pub bytes: Vec<u8>,
    pub then: Then,
}

/// And after it.
#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    Listen,
    Close,
    Hang,
    /// Goes on with these bytes for ever.
    Repeat(&'static [u8]),
}

pub fn reply(bytes: impl Into<Vec<u8>>, then: Then) -> Reply {
    Reply { bytes: bytes.into(), then }
}

/// A plain answer with a length.
pub fn answer(status: u16, headers: &str, body: &[u8]) -> Reply {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    reply([head.as_bytes(), body].concat(), Then::Listen)
}

/// Ends with its tasks when it is dropped.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<ServerCounts>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct ServerCounts {
    connections: usize,
    requests: Vec<String>,
}

type Script = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

impl Server {
    pub async fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Server {
        Server::begin(Arc::new(script), None).await
    }

    pub async fn start_tls(
        config: Arc<ServerConfig>,
        script: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Server {
        Server::begin(Arc::new(script), Some(config.into())).await
    }

    async fn begin(script: Script, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(ServerCounts::default()));
        let mut tasks = JoinSet::new();
        let shared = seen.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                let (script, seen, tls) = (script.clone(), shared.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, script, seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, script, seen).await;
                            }
                        }
                    }
                });
            }
        });
        Server { port, seen, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: Script,
    seen: Arc<Mutex<ServerCounts>>,
) {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => request.push(byte),
                Err(_) => return,
            }
        }
        let request = String::from_utf8(request).unwrap().to_ascii_lowercase();
        let Reply { bytes, then } = script(&request);
        seen.lock().unwrap().requests.push(request);
        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        match then {
            Then::Listen => {}
            Then::Close => {
                let _ = stream.shutdown().await;
                return;
            }
            Then::Hang => std::future::pending().await,
            Then::Repeat(more) => while stream.write_all(more).await.is_ok() {},
        }
    }
}
