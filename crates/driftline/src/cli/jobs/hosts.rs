//! `driftline hosts`: the hosts that jobs have met, or one of them in detail.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{count, counted, quoted, shown, size, size_of, span, when};
use crate::verbs::jobs::hosts::throttles::HostThrottle;
use crate::verbs::jobs::hosts::{HostLine, Hosts, HostsRequest, HostsResponse, RobotsFile};
use clap::{Args as ClapArgs, ValueEnum};
use crawl::fetch::sentences;
use std::process::ExitCode;
use store::clock;

/// List the hosts that jobs have visited, or show one in detail
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline hosts --by errors --limit 10
Example: driftline hosts www.example.com")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    request: HostsRequest,
}

/// Runs the verb. A host that nobody has met is a "no".
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let response = args.place.ask::<Hosts>(args.request.clone())?;
    let unknown = args.request.host.is_some() && response.hosts.is_empty();
    if args.place.json() {
        say_json(&response)?;
    } else {
        let now_ms = clock::now_ms();
        match (&args.request.host, response.hosts.first()) {
            (Some(name), None) => {
                say(&format!("no job has visited a host {}; check its spelling", shown(name)));
            }
            (Some(_), Some(host)) => detail(host, now_ms).iter().for_each(|line| say(line)),
            (None, _) => print(&args, &response, now_ms),
        }
    }
    Ok(if unknown { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(args: &Args, response: &HostsResponse, now_ms: i64) {
    if response.hosts.is_empty() {
        say("no job has visited a host yet");
        return;
    }
    say(" documents   fetches    errors       bytes      mean  robots       host");
    response.hosts.iter().for_each(|host| say(&line(host, now_ms)));
    if response.more {
        say(&format!("only the first {} hosts were compared", response.walked));
    }
    if let Some(cursor) = &response.cursor {
        let by = args
            .request
            .by
            .to_possible_value()
            .map_or(String::new(), |it| it.get_name().to_owned());
        let job = args
            .request
            .job
            .as_ref()
            .map_or(String::new(), |job| format!(" --job {}", quoted(job)));
        let limit = args.request.limit;
        let (place, cursor) = (args.place.flags(), quoted(cursor));
        say(&format!(
            "next page: driftline hosts --by {by}{job} --limit {limit}{place} --cursor {cursor}"
        ));
    }
}

fn line(host: &HostLine, now_ms: i64) -> String {
    let mean = host.mean_ms.map_or("-".to_owned(), span);
    let robots = host.robots.first().map_or("-", |file| file.standing.as_str());
    let blocked = match host.blocked_ms {
        Some(until_ms) if until_ms > now_ms => {
            let by = host.blocked_by.as_deref().unwrap_or("trouble");
            format!("  blocked by {}, next request {}", shown(by), when(until_ms, now_ms))
        }
        None => host
            .blocked_by
            .as_deref()
            .map_or(String::new(), |code| format!("  not requested: {}", shown(&refusal(code)))),
        _ => String::new(),
    };
    format!(
        "{:>10}{:>10}{:>10}{:>12}{mean:>10}  {robots:<11}  {}{blocked}",
        host.documents,
        host.fetches,
        host.errors,
        size(host.bytes),
        shown(&host.host)
    )
}

fn detail(host: &HostLine, now_ms: i64) -> Vec<String> {
    let name = shown(&host.host);
    let mut out = vec![name.clone()];
    out.push(format!(
        "    {}, {}, {}, {} received",
        count(host.documents, "document"),
        counted(host.fetches, "fetch", "fetches"),
        count(host.errors, "error"),
        size(host.bytes)
    ));
    if let Some(mean_ms) = host.mean_ms {
        out.push(format!("    mean response time: {}", span(mean_ms)));
    }
    if let Some(delay_ms) = host.delay_ms {
        out.push(format!("    delay between requests: {}", span(delay_ms)));
    }
    out.push(match host.blocked_ms {
        Some(until_ms) if until_ms > now_ms => {
            let code = host.blocked_by.as_deref().unwrap_or("trouble");
            let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
            let times = count(host.failures, "failure");
            format!(
                "    blocked after {times} in a row ({}); next request {}",
                shown(&words),
                when(until_ms, now_ms)
            )
        }
        None if host.blocked_by.is_some() => {
            let code = host.blocked_by.as_deref().unwrap_or_default();
            format!("    not requested: {}", shown(&refusal(code)))
        }
        _ if host.next_ms > now_ms => {
            format!("    next request {}", when(host.next_ms, now_ms))
        }
        _ => "    can be requested now".to_owned(),
    });
    if !host.addresses.is_empty() {
        out.push(format!("    addresses: {}", shown(&host.addresses.join(", "))));
    }
    out.extend(host.throttles.iter().map(HostThrottle::line));
    if host.robots.is_empty() {
        out.push("    robots.txt: not fetched yet".to_owned());
    }
    out.extend(host.robots.iter().map(|file| robots_line(file, now_ms)));
    out.extend(host.endless.iter().map(|it| format!("    job {}: {}", shown(&it.job), it.line())));
    out.push(format!("    its documents: driftline documents --host {name}"));
    out
}

/// Why a host is not asked at all, and the flag that changes it.
fn refusal(code: &str) -> String {
    let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
    match sentences::PRIVATE.contains(&code) {
        true => format!("{words}; a job crawls it with --allow-private"),
        false => words,
    }
}

fn robots_line(file: &RobotsFile, now_ms: i64) -> String {
    let answer = file.status.map_or("no answer".to_owned(), |status| format!("status {status}"));
    let words = match file.standing.as_str() {
        "none" => format!("none ({answer}), so everything is allowed"),
        "unreachable" if file.status.is_none() => format!(
            "unavailable ({answer}), so nothing is allowed; fetched again {}, or by the next run",
            when(file.expires_ms, now_ms)
        ),
        "unreachable" => format!(
            "unavailable ({answer}), so nothing is allowed; fetched again {}",
            when(file.expires_ms, now_ms)
        ),
        standing => {
            let kept = if standing == "kept" {
                "; this is the last good copy, because it cannot be fetched now"
            } else {
                ""
            };
            let delay = file.crawl_delay_ms.map_or(String::new(), |delay_ms| {
                format!(", asks for {} between requests", span(delay_ms.cast_signed()))
            });
            let sitemaps = match file.sitemaps {
                0 => String::new(),
                number => format!(", names {}", count(number as i64, "sitemap")),
            };
            let root = if file.allows_root { "allows" } else { "forbids" };
            format!(
                "{} lines, {}, {root} the first page{delay}{sitemaps}{kept}",
                file.lines.unwrap_or(0),
                size_of(file.bytes.unwrap_or(0) as u64)
            )
        }
    };
    format!("    {}/robots.txt: {words}", shown(&file.origin))
}

#[cfg(test)]
mod tests;
