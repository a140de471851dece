//! The hostile hosts: what each kind does with a request. `None` closes the connection.
//!
//! All but the last kind have no robots.txt and say so at once, so that their pages are asked
//! for at all. Nothing ends by itself that the crawler should end.

use crate::whole;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const PIECE: &[u8] = &[b'x'; 64 * 1024];
const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
/// Kinds of hostile hosts; a host's number modulo this is its kind.
const KINDS: u64 = 10;
/// Links of a page of the endless calendar.
const DAYS: u64 = 30;

/// Does its worst to one request of hostile host `number`.
pub fn answer(number: u64, path: &str, bomb: &[u8], output: &mut impl Write) -> Option<()> {
    let kind = number % KINDS;
    if path == "/robots.txt" && kind != 9 {
        return send(output, &whole("404 Not Found", "", ""));
    }
    match kind {
        0 => drip(output, HTML),
        1 => silent(),
        2 => endless(output),
        3 => huge(output),
        4 => redirect(number, path, output),
        5 => calendar(path, output),
        6 => None,
        7 => bombed(bomb, output),
        8 => endless_head(output),
        _ => drip(output, "Content-Type: text/plain\r\n"),
    }
}

fn send(output: &mut impl Write, text: &str) -> Option<()> {
    output.write_all(text.as_bytes()).ok()
}

/// A byte a second.
fn drip(output: &mut impl Write, head: &str) -> Option<()> {
    send(output, &format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 1000000\r\n\r\n"))?;
    loop {
        std::thread::sleep(SECOND);
        send(output, "x")?;
    }
}

/// Takes the request and never says a word.
fn silent() -> Option<()> {
    loop {
        std::thread::sleep(60 * SECOND);
    }
}

/// Chunks without end, as fast as they are taken.
fn endless(output: &mut impl Write) -> Option<()> {
    send(output, &format!("HTTP/1.1 200 OK\r\n{HTML}Transfer-Encoding: chunked\r\n\r\n"))?;
    loop {
        send(output, &format!("{:x}\r\n", PIECE.len()))?;
        output.write_all(PIECE).ok()?;
        send(output, "\r\n")?;
    }
}

/// A body that says it has a tebibyte, and has.
fn huge(output: &mut impl Write) -> Option<()> {
    let length = 1_u64 << 40;
    let head =
        format!("Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n");
    send(output, &format!("HTTP/1.1 200 OK\r\n{head}"))?;
    loop {
        output.write_all(PIECE).ok()?;
    }
}

/// Half of the hosts lead in a circle of three pages, half ever further.
fn redirect(number: u64, path: &str, output: &mut impl Write) -> Option<()> {
    let step: u64 = path.trim_start_matches("/to/").parse().unwrap_or(0);
    let is_circle = (number / KINDS).is_multiple_of(2);
    let next = if is_circle { (step + 1) % 3 } else { step + 1 };
    send(output, &whole("302 Found", &format!("Location: /to/{next}\r\n"), ""))
}

/// Every page leads to thirty others that nobody has seen.
fn calendar(path: &str, output: &mut impl Write) -> Option<()> {
    let day: u64 = path.trim_start_matches("/day/").parse().unwrap_or(0);
    let mut text = format!("<!doctype html><title>Day {day}</title><p>Nothing on day {day}.");
    for next in 1..=DAYS {
        let _ = write!(text, "<a href=\"/day/{}\">{next}</a> ", day.wrapping_mul(DAYS) + next);
    }
    send(output, &whole("200 OK", HTML, &text))
}

/// A small body that unpacks to a large one.
fn bombed(bomb: &[u8], output: &mut impl Write) -> Option<()> {
    let length = bomb.len();
    let head = format!("{HTML}Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n");
    send(output, &format!("HTTP/1.1 200 OK\r\n{head}"))?;
    output.write_all(bomb).ok()
}

/// Header lines without end.
fn endless_head(output: &mut impl Write) -> Option<()> {
    send(output, "HTTP/1.1 200 OK\r\n")?;
    for line in 0_u64.. {
        send(output, &format!("X-Line-{line}: {line}\r\n"))?;
    }
    Some(())
}
