//! A mail server: plain, with STARTTLS, or with TLS from the start; it keeps what it gets,
//! or refuses it.

use super::server::Server;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};

/// How a server is spoken to.
#[derive(Clone)]
pub enum Security {
    /// In the open.
    Plain,
    /// In the open at first.
    StartTls(Arc<ServerConfig>),
    /// Secretly from the start.
    Tls(Arc<ServerConfig>),
}

/// A message as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    pub login: Option<String>,
    pub is_secret: bool,
    pub text: String,
}

#[derive(Default)]
struct Box_ {
    mails: Vec<Mail>,
    /// What is said to the next messages instead of taking them.
    refusals: VecDeque<&'static str>,
}

/// A mail server.
pub struct Smtp {
    server: Server,
    kept: Arc<(Mutex<Box_>, Condvar)>,
}

impl Smtp {
    /// Starts one.
    pub fn start(security: Security) -> Smtp {
        let kept: Arc<(Mutex<Box_>, Condvar)> = Arc::default();
        let mine = kept.clone();
        let server = Server::serving(0, move |stream| {
            let _ = talk(stream, &security, &mine);
        });
        Smtp { server, kept }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Refuses the next message with these words.
    pub fn refuse(&self, words: &'static str) {
        self.kept.0.lock().unwrap().refusals.push_back(words);
    }

    /// What it has got.
    pub fn mails(&self) -> Vec<Mail> {
        self.kept.0.lock().unwrap().mails.clone()
    }

    /// Waits for so many messages.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Mail> {
        let held = self.kept.0.lock().unwrap();
        let few = |it: &mut Box_| it.mails.len() < count;
        let (held, late) = self.kept.1.wait_timeout_while(held, super::PATIENCE, few).unwrap();
        assert!(!late.timed_out(), "{} of {count} messages came", held.mails.len());
        held.mails.clone()
    }
}

type SharedMailbox = Arc<(Mutex<Box_>, Condvar)>;

fn talk(stream: TcpStream, security: &Security, kept: &SharedMailbox) -> std::io::Result<()> {
    let secret = |config: &Arc<ServerConfig>, stream| {
        StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
    };
    match security {
        Security::Tls(config) => {
            let mut session = Session::new(secret(config, stream), kept, true);
            session.say("220 mail.test ready")?;
            session.serve(false).map(|_| ())
        }
        Security::Plain | Security::StartTls(_) => {
            let mut session = Session::new(stream.try_clone()?, kept, false);
            session.say("220 mail.test ready")?;
            let starts = session.serve(matches!(security, Security::StartTls(_)))?;
            match security {
                Security::StartTls(config) if starts => {
                    Session::new(secret(config, stream), kept, true).serve(false).map(|_| ())
                }
                _ => Ok(()),
            }
        }
    }
}

struct Session<'a, S: Read + Write> {
    stream: BufReader<S>,
    kept: &'a SharedMailbox,
    mail: Mail,
}

impl<S: Read + Write> Session<'_, S> {
    fn new(stream: S, kept: &SharedMailbox, is_secret: bool) -> Session<'_, S> {
        let mail = Mail { is_secret, ..Mail::default() };
        Session { stream: BufReader::new(stream), kept, mail }
    }

    fn say(&mut self, line: &str) -> std::io::Result<()> {
        self.stream.get_mut().write_all(format!("{line}\r\n").as_bytes())?;
        self.stream.get_mut().flush()
    }

    /// Serves until the end; true when TLS is to begin.
    fn serve(&mut self, offers_tls: bool) -> std::io::Result<bool> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Ok(false);
            }
            let line = line.trim_end();
            let word = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
            let rest = line.split_once(':').map_or("", |it| it.1);
            let address = rest.trim_start_matches('<').split('>').next().unwrap_or_default();
            match word.as_str() {
                "EHLO" if offers_tls => self.say("250-mail.test\r\n250 STARTTLS")?,
                "EHLO" => self.say("250-mail.test\r\n250 AUTH PLAIN")?,
                "STARTTLS" => {
                    self.say("220 go ahead")?;
                    return Ok(true);
                }
                "AUTH" => {
                    self.mail.login = line.rsplit(' ').next().map(str::to_owned);
                    self.say("235 welcome")?;
                }
                "MAIL" => {
                    self.mail.from = address.to_owned();
                    self.say("250 fine")?;
                }
                "RCPT" => {
                    self.mail.to.push(address.to_owned());
                    self.say("250 fine")?;
                }
                "DATA" => self.data()?,
                "QUIT" => {
                    self.say("221 bye")?;
                    return Ok(false);
                }
                _ => self.say("250 fine")?,
            }
        }
    }

    fn data(&mut self) -> std::io::Result<()> {
        self.say("354 go ahead")?;
        let mut text = String::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 || line == ".\r\n" {
                break;
            }
            text.push_str(&line);
        }
        let refusal = self.kept.0.lock().unwrap().refusals.pop_front();
        if let Some(words) = refusal {
            return self.say(words);
        }
        let mail = Mail { text, ..std::mem::take(&mut self.mail) };
        self.kept.0.lock().unwrap().mails.push(mail);
        self.kept.1.notify_all();
        self.say("250 taken")
    }
}
