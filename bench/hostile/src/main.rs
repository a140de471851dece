//! Good hosts and hostile ones on loopback: `hostile-bench PORT GOOD PAGES BOMB` serves host
//! number `n` at 127.0.(n / 250 + 1).(n % 250 + 1). The first `GOOD` hosts have `PAGES` pages
//! each; each one after them does one of the things in [`hostile`], by its number.
//!
//! Prints `ready`, then `seconds N` once every good page has been asked for: the time from the
//! first of them to the last. `BOMB` is a gzip file that unpacks to far more than it is.
//!
//! One thread a connection, which sleeps when the host is slow. Only loopback is answered.

mod good;
mod hostile;

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

/// Hosts in one /24 of loopback.
const HOSTS_OF_A_NET: u64 = 250;
/// A connection's thread formats one page at most.
const STACK_BYTES: usize = 128 * 1024;

/// What is served, and to be measured.
struct Web {
    good: good::Good,
    bomb: Vec<u8>,
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|it| it.parse::<u64>().ok());
    let (Some(port), Some(hosts), Some(pages), Some(bomb)) =
        (number(0), number(1), number(2), arguments.get(3))
    else {
        eprintln!("usage: hostile-bench PORT GOOD PAGES BOMB");
        std::process::exit(2);
    };
    let web = Arc::new(Web { good: good::Good::new(hosts, pages), bomb: std::fs::read(bomb)? });
    // A host is told by the address that was connected to, so one listener serves them all.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, u16::try_from(port).unwrap_or(0)))?;
    println!("ready");
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let web = web.clone();
        let _ =
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve(&web, stream));
    }
    Ok(())
}

/// Answers the requests of a connection until it ends.
fn serve(web: &Web, stream: TcpStream) -> Option<()> {
    let host = host_of(stream.local_addr().ok()?.ip())?;
    let _ = stream.set_nodelay(true);
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    loop {
        let path = path_asked(&mut input)?;
        match host.checked_sub(web.good.hosts) {
            None => output.write_all(web.good.answer(host, &path).as_bytes()).ok()?,
            Some(number) => hostile::answer(number, &path, &web.bomb, &mut output)?,
        }
    }
}

/// The number of a host; none for an address that is not loopback.
fn host_of(address: IpAddr) -> Option<u64> {
    let IpAddr::V4(address) = address else { return None };
    let [_, _, net, host] = address.octets().map(u64::from);
    let is_ours = address.is_loopback() && net > 0 && host > 0;
    is_ours.then(|| (net - 1) * HOSTS_OF_A_NET + host - 1)
}

fn path_asked(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    while !line.trim_end().is_empty() {
        line.clear();
        input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    }
    Some(path)
}

/// An answer with its length.
fn whole(status: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n{body}")
}
