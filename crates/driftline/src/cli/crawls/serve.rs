//! `driftline serve`: works on all jobs, and answers the HTTP API.
//!
//! Invariants: nobody but this machine can call a server without TLS, unless whoever starts
//! it says that a proxy stands before it; whoever calls has a token; when it ends, what is
//! under way is committed and answered first.

use super::crawl::signals;
use super::run_as::RunAs;
use super::work::{Audience, Effort, WorkProcess};
use crate::cli::say;
use crate::http::access::ApiAccess;
use crate::http::answer_pool::{self, AT_ONCE_MAX};
use crate::http::dispatch::ApiState;
use crate::http::log::Log;
use crate::http::server::{self, ApiServer};
use crate::place::Place;
use crate::place::holder::DOING_SERVE;
use crate::text::shown;
use anyhow::{Context, bail};
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use store::tables::tokens;
use store::{Db, clock};

/// What it is doing if it works on no job.
const ANSWERING: &str = "serve --no-work";

/// Work on all jobs and serve the HTTP API until stopped
///
/// Every caller needs a token: `driftline token create`. An address that other machines can reach
/// requires TLS, from this server or from a proxy in front of it.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  driftline serve
  driftline serve --listen 0.0.0.0:8470 --host search.example --tls-cert cert.pem --tls-key key.pem
  driftline serve --listen 10.0.0.5:8470 --host search.example --behind-proxy --log json
  driftline serve --answers 8        # favour callers over crawls
  driftline serve --user driftline   # started by root

Exit code: 0 stopped cleanly, 2 error.")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8470")]
    listen: SocketAddr,
    /// Host name by which callers reach the server; can be repeated
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// File with the server's certificate chain, its own certificate first
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// File with the private key of the first certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of the server terminates TLS
    #[arg(long, conflicts_with = "tls_cert")]
    behind_proxy: bool,
    /// Format of the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Only serve the API; work on no job
    #[arg(long)]
    no_work: bool,
    /// Number of requests to answer at once; others wait [default: half of the cores, at least 2,
    /// because jobs need the rest; all cores with --no-work]
    #[arg(long, value_name = "N", value_parser = answers_at_once)]
    answers: Option<usize>,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    run_as: RunAs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// For programs: one JSON object per line
    Json,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let warning = args.run_as.begin()?;
    // Whatever fails from now on is told in the form of the log.
    let log = Arc::new(Log::to_stderr(args.log == LogFormat::Json));
    if !args.listen.ip().is_loopback() && args.tls_cert.is_none() && !args.behind_proxy {
        bail!(
            "other machines can reach {}, and without TLS tokens would be sent in the clear; give \
             --tls-cert and --tls-key, or --behind-proxy if a proxy in front terminates TLS",
            args.listen
        );
    }
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => Some(server::tls(certificates, key)?),
        _ => None,
    };
    let listener = TcpListener::bind(args.listen).with_context(|| {
        format!("cannot listen on {}; choose another address with --listen", args.listen)
    })?;
    let mut working = WorkProcess::prepare(&args.place, &args.effort)?;
    working.own.push(listener.local_addr()?);
    store::targets::claim_listener(listener.local_addr()?);
    let hosted = working.hosted.clone();
    let doing = if args.no_work { ANSWERING } else { DOING_SERVE };
    let hosts = Some(hosted.clone()).filter(|_| !args.no_work);
    let listening = working.held.listen_and_host(doing, hosts)?;
    if let Some(warning) = warning {
        log.event("warn", "root", json!({"message": warning}));
    }
    let is_secure = tls.is_some() || args.behind_proxy;
    let access = ApiAccess::new(names(&args));
    let context = working.held.context(doing);
    let served =
        ApiState::new(context, access, is_secure, log.clone(), Box::new(move || hosted.nudge()));
    let served = Arc::new(served.with_answers_at_once(at_once(&args)));
    let serving = ApiServer::start(listener, tls, served.clone())?;
    let (address, db) = (serving.address, working.held.db.clone());
    let began = || {
        log.event("info", "start", json!({"address": address.to_string()}));
        announce(&args, &db, address)
    };
    let told = log.clone();
    let tell = move |line: &str| told.event("info", "work", json!({"message": line}));
    let ended = match args.no_work {
        false => {
            let (audience, ends) = (Audience::Log(Box::new(tell)), move || served.end());
            working.run(&args.place, false, audience, began, ends).map(|_| ())
        }
        true => wait(began),
    };
    // Whoever is being answered uses the directory: it is given back last.
    serving.stop();
    drop(listening);
    drop(working);
    log.event("info", "stop", json!({}));
    ended.map(|()| ExitCode::SUCCESS)
}

fn answers_at_once(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|it| (1..=AT_ONCE_MAX).contains(it));
    number.ok_or_else(|| format!("give a number from 1 to {AT_ONCE_MAX}"))
}

/// Answers that are computed at a time.
fn at_once(args: &Args) -> usize {
    args.answers.unwrap_or_else(|| match args.no_work {
        true => answer_pool::cores(),
        false => answer_pool::beside_a_crawl(),
    })
}

/// Names by which the server may be called.
fn names(args: &Args) -> Vec<String> {
    let ip = args.listen.ip();
    let own = match ip.is_unspecified() {
        true => None,
        false if ip.is_ipv6() => Some(format!("[{ip}]")),
        false => Some(ip.to_string()),
    };
    args.host.iter().cloned().chain(own).collect()
}

/// Says where it is, and how to get in.
fn announce(args: &Args, db: &Db, address: SocketAddr) -> anyhow::Result<()> {
    let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    let now_ms = clock::now_ms();
    let found = db.read(tokens::list)?;
    let is_good = |it: &tokens::Token| {
        it.revoked_ms.is_none() && it.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    };
    let has_token = found.iter().any(is_good);
    if args.place.json() {
        say(&json!({"url": url, "process": std::process::id(), "has_token": has_token}).to_string());
        return Ok(());
    }
    say(&format!("serving {} at {url}; press Ctrl-C to stop", args.place.name()));
    if !has_token {
        let place = args.place.flags();
        say(&format!(
            "no token is valid yet; create one: driftline token create me --role admin{}",
            shown(&place)
        ));
    }
    Ok(())
}

/// Waits until somebody stops it.
fn wait(began: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let (stop, stopped) = sync_channel::<()>(1);
    let _stopping = signals::heed("serve", move || {
        let _ = stop.try_send(());
    })?;
    began()?;
    let _ = stopped.recv();
    Ok(())
}
