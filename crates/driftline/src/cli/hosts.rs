//! `driftline hosts`: the hosts that jobs have met, the largest, the most troubled or
//! the slowest first; or one of them in detail.
//!
//! A host's figures are of all jobs: politeness knows no jobs. `rank` finds the first
//! ones without keeping all in memory.

mod rank;
mod throttled;

use super::answers::Answers;
use super::endless::{self, Endless};
use super::place::Place;
use super::urls::host_name;
use super::words::{count, counted, quoted, size, size_of, span, when};
use super::{say, shown};
use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use crawl::definitions::WebSpec;
use crawl::fetch::sentences;
use page::ids::{bin_of, part_of};
use page::robots::Robots;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::clock;
use store::ids::{BinId, Part};
use store::tables::addresses;
use store::tables::bins::{self, Bin};
use store::tables::robots::{self, Stored};
use store::tables::settings;
use throttled::Throttled;

/// Hosts of one answer at most.
const LIMIT_MAX: u32 = 10_000;

/// List the hosts that jobs have met, or show one in detail
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline hosts --by errors --limit 10
Example: driftline hosts www.example.com")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    ask: Ask,
}

/// The question, as it is written and as it goes through a socket.
#[derive(ClapArgs, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// One host, to be shown in detail
    #[arg(value_name = "HOST", conflicts_with_all = ["by", "cursor"])]
    host: Option<String>,
    /// Only hosts that this job has met
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Which come first
    #[arg(long, value_enum, default_value_t = By::Documents)]
    by: By,
    /// Hosts to list
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIMIT_MAX)))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// What hosts are ordered by, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Documents known
    Documents,
    /// Requests that failed
    Errors,
    /// The mean time an answer takes
    Slowest,
}

/// The answer.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    hosts: Vec<Host>,
    /// How many hosts were compared.
    walked: u64,
    /// There are more hosts than are compared.
    more: bool,
    /// To go on with; `null` when all were listed.
    cursor: Option<String>,
}

/// One host.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Host {
    host: String,
    documents: i64,
    fetches: i64,
    errors: i64,
    bytes: i64,
    /// The mean time an answer takes.
    mean_ms: Option<i64>,
    /// The delay that the host asks for.
    delay_ms: Option<i64>,
    /// When it may be asked again.
    next_ms: i64,
    /// Failures in a row.
    failures: i64,
    /// The breaker is open until then.
    blocked_ms: Option<i64>,
    blocked_by: Option<String>,
    robots: Vec<RobotsFile>,
    /// Where it was found; only where one host is asked for.
    #[serde(default)]
    addresses: Vec<String>,
    /// Patterns of it that look endless; only where one host is asked for.
    #[serde(default)]
    endless: Vec<Endless>,
    /// What connections allow it; only where one host is asked for.
    #[serde(default)]
    throttles: Vec<Throttled>,
}

/// The robots.txt of one origin.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct RobotsFile {
    origin: String,
    /// What it means today: `read`, `none`, `kept`, `unreachable`.
    standing: String,
    status: Option<i64>,
    asked_ms: i64,
    expires_ms: i64,
    bytes: Option<usize>,
    lines: Option<usize>,
    crawl_delay_ms: Option<u64>,
    sitemaps: usize,
    /// Whether the crawler may fetch the host's first page.
    allows_root: bool,
}

/// Runs the verb. A host that nobody has met is a "no".
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let json = args.place.ask("hosts", &args.ask)?;
    let answer: Answer = serde_json::from_value(json.clone())
        .context("the process that holds the directory is of another version")?;
    let unknown = args.ask.host.is_some() && answer.hosts.is_empty();
    if args.place.json() {
        say(&json.to_string());
    } else {
        let now_ms = clock::now_ms();
        match (&args.ask.host, answer.hosts.first()) {
            (Some(name), None) => {
                say(&format!("no job has met a host {}; check its spelling", shown(name)));
            }
            (Some(_), Some(host)) => detail(host, now_ms).iter().for_each(|line| say(line)),
            (None, _) => print(&args, &answer, now_ms),
        }
    }
    Ok(if unknown { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The answer, by whoever has the rows open.
pub fn answer(answers: &Answers, mut ask: Ask) -> anyhow::Result<Json> {
    ask.limit = ask.limit.clamp(1, LIMIT_MAX);
    let job = match &ask.job {
        Some(name) => Some(answers.job(Some(name.clone()))?),
        None => None,
    };
    let agent = job.as_ref().and_then(|job| WebSpec::from_json(&job.docspec).ok());
    let agent = agent.unwrap_or_default().product().to_owned();
    let found = match &ask.host {
        Some(name) => rank::Ranked::one(find(answers, &host_name(name))?),
        None => rank::rank(&answers.db, job.map(|job| job.id), &ask)?,
    };
    let mut hosts = Vec::new();
    for (part, bin) in found.bins {
        let name = bin.name.clone();
        let is_one = ask.host.is_some();
        let (stored, mut one) = answers.db.read(move |tx| {
            let mut one = (Vec::new(), Vec::new(), Vec::new());
            if is_one {
                let suffixes = settings::suffix_list(tx)?;
                one.0 = endless::of_host(tx, (part, &name), &suffixes)?;
                one.1 = throttled::of_host(tx, &name)?;
                one.2 = addresses::of_host(tx, part, &name)?;
            }
            Ok((robots::of_host(tx, part, &name)?, one))
        })?;
        one.2.sort_by_key(|(_, found_ms)| -found_ms);
        let (endless, throttles) = (one.0, one.1);
        let addresses = one.2.into_iter().map(|(address, _)| address).collect();
        let files = stored.iter().map(|stored| file(stored, &agent)).collect();
        hosts.push(Host { addresses, endless, throttles, ..host(bin, files) });
    }
    let (walked, more, cursor) = (found.walked, found.more, found.cursor);
    Ok(serde_json::to_value(Answer { hosts, walked, more, cursor })?)
}

fn find(answers: &Answers, name: &str) -> anyhow::Result<Option<(Part, Bin)>> {
    let name = name.to_owned();
    let found = answers.db.read(move |tx| {
        let suffixes = settings::suffix_list(tx)?;
        let part = part_of(Some(suffixes.grouping_domain(&name)), &name, settings::parts(tx)?);
        let part = Part(part.into());
        let bin = bins::load(tx, part, &[BinId(bin_of(&name))])?.pop();
        Ok(bin.map(|bin| (part, bin)))
    })?;
    Ok(found)
}

fn host(bin: Bin, robots: Vec<RobotsFile>) -> Host {
    Host {
        mean_ms: rank::mean_ms(&bin),
        host: bin.name,
        documents: bin.documents,
        fetches: bin.fetches,
        errors: bin.errors,
        bytes: bin.bytes,
        delay_ms: bin.delay_ms,
        next_ms: bin.next_ms,
        failures: bin.failures,
        blocked_ms: bin.blocked_ms,
        blocked_by: bin.blocked_by,
        robots,
        addresses: Vec::new(),
        endless: Vec::new(),
        throttles: Vec::new(),
    }
}

fn file(stored: &Stored, agent: &str) -> RobotsFile {
    let robots = match &stored.body {
        Some(body) => Robots::parse(body),
        None if stored.closed => Robots::disallow_all(),
        None => Robots::allow_all(),
    };
    let standing = match (&stored.body, stored.closed) {
        (Some(_), _) if stored.failing_ms.is_some() => "kept",
        (Some(_), _) => "read",
        (None, true) => "unreachable",
        (None, false) => "none",
    };
    RobotsFile {
        origin: stored.origin.clone(),
        standing: standing.to_owned(),
        status: stored.status,
        asked_ms: stored.asked_ms,
        expires_ms: stored.expires_ms,
        bytes: stored.body.as_ref().map(Vec::len),
        lines: stored.body.as_ref().map(|body| body.split_inclusive(|byte| *byte == b'\n').count()),
        crawl_delay_ms: robots.crawl_delay_ms(agent),
        sitemaps: robots.sitemaps().count(),
        allows_root: robots.verdict(agent, "/").allowed,
    }
}

fn print(args: &Args, answer: &Answer, now_ms: i64) {
    if answer.hosts.is_empty() {
        say("no host has been met yet");
        return;
    }
    say(" documents   fetches    errors       bytes      mean  robots       host");
    answer.hosts.iter().for_each(|host| say(&line(host, now_ms)));
    if answer.more {
        say(&format!("only the first {} hosts were compared", answer.walked));
    }
    if let Some(cursor) = &answer.cursor {
        let by =
            args.ask.by.to_possible_value().map_or(String::new(), |it| it.get_name().to_owned());
        let job =
            args.ask.job.as_ref().map_or(String::new(), |job| format!(" --job {}", quoted(job)));
        let limit = args.ask.limit;
        let (place, cursor) = (args.place.flags(), quoted(cursor));
        say(&format!(
            "go on with: driftline hosts --by {by}{job} --limit {limit}{place} --cursor {cursor}"
        ));
    }
}

fn line(host: &Host, now_ms: i64) -> String {
    let mean = host.mean_ms.map_or("-".to_owned(), span);
    let robots = host.robots.first().map_or("-", |file| file.standing.as_str());
    let blocked = match host.blocked_ms {
        Some(until_ms) if until_ms > now_ms => {
            let by = host.blocked_by.as_deref().unwrap_or("trouble");
            format!("  blocked by {}, asked again {}", shown(by), when(until_ms, now_ms))
        }
        None => host
            .blocked_by
            .as_deref()
            .map_or(String::new(), |code| format!("  not asked: {}", shown(&refusal(code)))),
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

fn detail(host: &Host, now_ms: i64) -> Vec<String> {
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
        out.push(format!("    an answer takes {} in the mean", span(mean_ms)));
    }
    if let Some(delay_ms) = host.delay_ms {
        out.push(format!("    it is given {} between requests", span(delay_ms)));
    }
    out.push(match host.blocked_ms {
        Some(until_ms) if until_ms > now_ms => {
            let code = host.blocked_by.as_deref().unwrap_or("trouble");
            let words = sentences::of(code).unwrap_or_else(|| code.to_owned());
            let times = count(host.failures, "failure");
            format!(
                "    left alone after {times} in a row ({}); asked again {}",
                shown(&words),
                when(until_ms, now_ms)
            )
        }
        None if host.blocked_by.is_some() => {
            let code = host.blocked_by.as_deref().unwrap_or_default();
            format!("    not asked: {}", shown(&refusal(code)))
        }
        _ if host.next_ms > now_ms => {
            format!("    may be asked again {}", when(host.next_ms, now_ms))
        }
        _ => "    may be asked now".to_owned(),
    });
    if !host.addresses.is_empty() {
        out.push(format!("    found at {}", shown(&host.addresses.join(", "))));
    }
    out.extend(host.throttles.iter().map(Throttled::line));
    if host.robots.is_empty() {
        out.push("    robots.txt: not asked for yet".to_owned());
    }
    out.extend(host.robots.iter().map(|file| robots_line(file, now_ms)));
    out.extend(host.endless.iter().map(|it| format!("    job {}: {}", shown(&it.job), it.line())));
    out.push(format!("    its documents: driftline urls --host {name}"));
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
            "cannot be had ({answer}), so nothing is allowed; asked for again {}, or by the next run",
            when(file.expires_ms, now_ms)
        ),
        "unreachable" => format!(
            "cannot be had ({answer}), so nothing is allowed; asked for again {}",
            when(file.expires_ms, now_ms)
        ),
        standing => {
            let kept = if standing == "kept" {
                "; the last good copy, since now there is trouble"
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
