//! From what was looked up to the one reason that counts. Pure: the same look gives
//! the same answer.
//!
//! Decides by the document's state, since each state has its own reasons; the words
//! say what is the case, then what to do.

use super::cause::{Because, Cause};
use super::lookup::{JobLook, LookedUp};
use super::outcomes::{done, failed, removed, words_of};
use crate::text::{count, counted, quoted, span, when};
use crawl::budget::{BudgetRule, ClosedPattern};
use crawl::definitions::WebSpec;
use crawl::fetch::sentences;
use crawl::robots::CANNOT_BE_HAD;
use crawl::scope::{Cut, Reach, Scope, ScopeRules};
use crawl::worker::finish::GIVEN_UP;
use page::robots::{Robots, Verdict};
use store::tables::overview::RunState;
use store::tables::queue::list::ListedDocument;
use store::tables::queue::{Action, ReasonCode, State};

/// Why the URL stands where it stands.
pub fn because(looked: &LookedUp) -> Because {
    let url = match &looked.url {
        Ok(url) => url,
        Err(refused) => {
            return Because::new(Cause::NotWeb, format!("It is not a valid URL: {refused}."))
                .next("Give a complete URL, such as https://example.com/page.");
        }
    };
    let Some(job) = &looked.job else {
        return Because::new(Cause::NoJobs, "There is no job yet.")
            .run("Crawl it", format!("driftline crawl {}", quoted(url)));
    };
    let Some(row) = &looked.row else { return unknown(looked, job, url) };
    match row.state {
        State::Ready => stopped(looked).unwrap_or_else(|| ready(looked, job, row)),
        State::Waiting => waiting(looked, row),
        State::Active => active(looked),
        State::Cut => looked_at_again(job, row, cut(looked, job, row, url)),
        State::Failed => {
            let left = row.reason_code().is_some_and(|it| GIVEN_UP.contains(&it));
            let stopped = stopped(looked).filter(|_| left);
            stopped.unwrap_or_else(|| looked_at_again(job, row, failed(looked, job, row)))
        }
        State::Done => done(looked, job, row),
    }
}

/// Nothing of its host may start.
fn stopped(looked: &LookedUp) -> Option<Because> {
    let (connection, expression) = looked.stopped.as_ref()?;
    let host = looked.bin.as_ref().map_or("", |bin| bin.name.as_str());
    let sentence = format!(
        "Its host {host} is blocked: throttle {expression:?} of connection {connection} allows no \
         documents."
    );
    let lift = quoted(&format!("{expression}="));
    let command = format!("driftline connection edit {} --throttle {lift}", quoted(connection));
    Some(Because::new(Cause::Throttled, sentence).run("Remove the throttle", command))
}

/// A run asks again for what older ones gave up, so there is nothing to do but wait.
fn looked_at_again(job: &JobLook, row: &ListedDocument, because: Because) -> Because {
    let older = row.done_run.is_some_and(|run| run < job.run);
    if job.standing != RunState::Running || !older {
        return because;
    }
    because.next(format!("Run {} is in progress and will check it again.", job.run))
}

/// The command that runs a job again, with further flags.
pub fn crawl(job: &JobLook, flags: &str) -> String {
    let space = if flags.is_empty() { "" } else { " " };
    format!("driftline crawl --job {}{space}{flags}", quoted(&job.name))
}

/// The job's queue does not have it.
fn unknown(looked: &LookedUp, job: &JobLook, url: &str) -> Because {
    if let Some(removed) = removed(looked, job) {
        return removed;
    }
    let is_seed = job.spec.as_ref().is_some_and(|spec| spec.seeds.iter().any(|seed| seed == url));
    let verdict = job.scope.as_ref().map_or(Ok(()), |scope| {
        scope.judge(url, i64::from(!is_seed)).map_err(|cut| (cut, scope.explain(cut)))
    });
    if let Err((cut, words)) = verdict {
        return out_of_scope(job, url, cut, &words);
    }
    if job.run.0 == 0 {
        return Because::new(Cause::NotStarted, format!("Job {} has not been run yet.", job.name))
            .run("Run it", crawl(job, ""));
    }
    let sentence = format!(
        "It is in the scope of job {}, but no page, sitemap or seed has referred to it up to run \
         {}.",
        job.name, job.run
    );
    Because::new(Cause::Unseen, sentence).run("Add it as a seed", crawl(job, &with_seed(job, url)))
}

/// The job's seeds and one more, as `crawl` takes them: it replaces what was there.
fn with_seed(job: &JobLook, url: &str) -> String {
    const SHOWN_MAX: usize = 3;
    let seeds = job.spec.as_ref().map_or(&[][..], |spec| &spec.seeds);
    let mut words: Vec<String> = seeds.iter().take(SHOWN_MAX).map(|seed| quoted(seed)).collect();
    if seeds.len() > SHOWN_MAX {
        words.push("...".to_owned());
    }
    words.push(quoted(url));
    words.join(" ")
}

fn out_of_scope(job: &JobLook, url: &str, cut: Cut, words: &str) -> Because {
    let sentence = format!("It is not in the scope of job {}: {words}.", job.name);
    let (cause, flags) = match cut {
        Cut::Reach => {
            let because = Because::new(Cause::OutOfScope, sentence);
            return match wider_reach(job, url) {
                Some(flags) => because.run("If it should be, change the job", crawl(job, flags)),
                None => because
                    .run("If it should be, add it as a seed", crawl(job, &with_seed(job, url))),
            };
        }
        Cut::NotIncluded => (Cause::NotIncluded, "--include EXPRESSION"),
        Cut::Excluded(_) => (Cause::Excluded, "--exclude ''"),
        Cut::Trap(_) => {
            return Because::new(Cause::Trap, format!("It looks like a crawler trap: {words}."))
                .next("If it is a real page, add it as a seed: seeds are exempt from this rule.");
        }
    };
    Because::new(cause, sentence).run("If it should be, change the job", crawl(job, flags))
}

/// The narrowest reach from the job's seeds that a URL lies within, short of everywhere.
fn wider_reach(job: &JobLook, url: &str) -> Option<&'static str> {
    let spec = job.spec.as_ref()?;
    let reaches = |reach: Reach| {
        let rules = ScopeRules { reach, ..ScopeRules::default() };
        let seeds = spec.seeds.iter().map(String::as_str);
        let scope = Scope::new(&rules, seeds, job.suffixes.clone());
        scope.is_ok_and(|scope| scope.judge(url, 0) != Err(Cut::Reach))
    };
    let wider = [(Reach::Host, "--scope host"), (Reach::Domain, "--scope domain")];
    wider.into_iter().find(|(reach, _)| reaches(*reach)).map(|(_, flags)| flags)
}

fn cut(looked: &LookedUp, job: &JobLook, row: &ListedDocument, url: &str) -> Because {
    let verdict = || match &job.scope {
        Some(scope) => {
            scope.judge_as(row.role, url, row.hops).map_err(|cut| (cut, scope.explain(cut)))
        }
        None => Ok(()),
    };
    match row.reason_code() {
        Some(code @ ReasonCode::Hops) => match &looked.too_far {
            Some(words) => {
                let sentence = format!("It is not in the scope of job {}: {words}.", job.name);
                Because::new(Cause::Hops, sentence)
                    .run("If it should be, change the job", crawl(job, "--max-hops N"))
            }
            None => lifted(job, code),
        },
        Some(code @ ReasonCode::Scope) => match verdict() {
            Err((cut, words)) => out_of_scope(job, url, cut, &words),
            Ok(()) => lifted(job, code),
        },
        Some(code @ ReasonCode::Limit) => match job.spec.as_ref().and_then(|spec| spec.pages_max) {
            Some(most) if job.taken >= most => {
                let sentence = format!(
                    "Job {} is limited to {} (--max-pages), and has {}.",
                    job.name,
                    count(most, "document"),
                    job.taken
                );
                let more = format!("--max-pages {}", most.saturating_mul(2));
                Because::new(Cause::Limit, sentence).run("Raise the limit", crawl(job, &more))
            }
            _ => lifted(job, code),
        },
        Some(code @ ReasonCode::Budget) if row.role.is_requisite() => requisites(job, code),
        Some(ReasonCode::Trap) => trap(row, verdict().err()),
        Some(ReasonCode::Budget) => budget(looked, job, row, url),
        Some(ReasonCode::Robots | ReasonCode::RobotsUnreachable) => robots(looked, job, url),
        Some(ReasonCode::Redirects) => Because::new(
            Cause::Redirects,
            "It was not fetched, because too many redirects in a row led to it.",
        )
        .next("Check where the chain begins; a chain this long is usually an error of the site."),
        Some(ReasonCode::Noindex) => noindex(job),
        Some(ReasonCode::Nofollow) => Because::new(
            Cause::Nofollow,
            "Every page that links to it asks crawlers not to follow (nofollow).",
        )
        .run("Follow such links", crawl(job, "--ignore-robots")),
        _ => Because::new(Cause::Cut, format!("It is excluded: {}.", words_of(row))),
    }
}

fn lifted(job: &JobLook, code: ReasonCode) -> Because {
    let code = code.name();
    let sentence = format!(
        "It was excluded ({code}) by settings that have changed since; the current settings allow \
         it."
    );
    Because::new(Cause::Lifted, sentence)
        .run("The next run adds it, if a page still links to it", crawl(job, ""))
}

fn trap(row: &ListedDocument, shape: Option<(Cut, String)>) -> Because {
    let words = match (&row.detail, shape) {
        (Some(detail), _) => detail.clone(),
        (None, Some((_, words))) => words,
        (None, None) => "too many pages of its pattern had nothing new".to_owned(),
    };
    Because::new(Cause::Trap, format!("It looks like a crawler trap: {words}."))
        .next("If it is a real page, add it as a seed: seeds are exempt from this rule.")
}

/// Cut because there are more requisites than the job takes in.
fn requisites(job: &JobLook, code: ReasonCode) -> Because {
    match job.spec.as_ref().map(|spec| spec.requisites_max) {
        Some(most) if job.requisites >= most => {
            let sentence = format!(
                "Job {} takes in at most {} (--max-requisites) beside its pages, and has {}.",
                job.name,
                count(most, "requisite"),
                job.requisites
            );
            let more = format!("--max-requisites {}", most.max(1).saturating_mul(2));
            Because::new(Cause::Limit, sentence).run("Raise the limit", crawl(job, &more))
        }
        _ => lifted(job, code),
    }
}

/// Cut for what came of pages like it.
fn budget(looked: &LookedUp, job: &JobLook, row: &ListedDocument, url: &str) -> Because {
    let host_pages = job.spec.as_ref().map_or(0, |spec| spec.host_pages);
    let because =
        |words: String| Because::new(Cause::Trap, format!("It is not followed, because {words}."));
    match (&looked.closed, &row.detail) {
        (Some(closed), _) if closed.rule == BudgetRule::Unlinked => {
            if host_pages == 0 || !closed.holds_with(host_pages) {
                return lifted(job, ReasonCode::Budget);
            }
            let more = format!("--host-pages {}", closed.documents.saturating_mul(2));
            because(closed.explain())
                .run("If these are real pages, raise the limit", crawl(job, &more))
        }
        (Some(closed), _) if closed.rule == BudgetRule::ListDepth => because(closed.explain())
            .run("If it is a real sitemap, add it as a seed", crawl(job, &with_seed(job, url))),
        (closed, detail) => {
            let words = detail.clone().or_else(|| closed.as_ref().map(ClosedPattern::explain));
            let unknown = "it looks like a crawler trap: too many pages like it had nothing new";
            because(words.unwrap_or_else(|| unknown.to_owned()))
                .run("If these are real pages, restart the count", crawl(job, "--reopen"))
        }
    }
}

pub fn noindex(job: &JobLook) -> Because {
    Because::new(Cause::Noindex, "The page itself forbids indexing (noindex).")
        .run("To keep it anyway", crawl(job, "--ignore-robots"))
}

/// The very line, from the copy that is stored.
pub fn robots(looked: &LookedUp, job: &JobLook, url: &str) -> Because {
    let ignore = |because: Because| {
        because.run("To ignore robots.txt, if you are allowed to", crawl(job, "--ignore-robots"))
    };
    let Some(stored) = &looked.robots else {
        return ignore(Because::new(Cause::Robots, "The robots.txt of its host forbids it."));
    };
    let Some(body) = &stored.body else {
        if !stored.closed {
            let sentence = "robots.txt forbade it, but its host has none now.";
            return Because::new(Cause::Robots, sentence)
                .run("The next run checks again", crawl(job, ""));
        }
        return robots_unreachable(looked, job);
    };
    let spec = WebSpec::default();
    let agent = job.spec.as_ref().unwrap_or(&spec).product();
    let robots = Robots::parse(body);
    match robots.verdict(agent, url) {
        Verdict { allowed: false, rule: Some(rule) } => {
            let sentence = format!(
                "Line {} of its robots.txt forbids it: {:?} (for {}).",
                rule.line,
                rule.text,
                if rule.agent == "*" { "all crawlers" } else { rule.agent }
            );
            ignore(Because::new(Cause::Robots, sentence))
        }
        _ => Because::new(Cause::Robots, "robots.txt forbade it, but the current copy allows it.")
            .run("The next run checks again", crawl(job, "")),
    }
}

pub fn robots_unreachable(looked: &LookedUp, job: &JobLook) -> Because {
    let stored = looked.robots.as_ref();
    let status = stored.and_then(|stored| stored.status);
    let row = looked.row.as_ref();
    let why = row.and_then(|row| row.detail.as_deref()?.strip_prefix(CANNOT_BE_HAD));
    let answer = match (why, status) {
        (Some(why), _) => why.to_owned(),
        (None, Some(status)) => format!("the server answered with status {status}"),
        (None, None) => "there was no answer".to_owned(),
    };
    let sentence = format!(
        "The robots.txt of its host could not be fetched ({answer}), so nothing on the host is \
         allowed."
    );
    let next = match stored.filter(|stored| stored.status.is_some()) {
        Some(stored) => {
            format!("robots.txt is fetched again {}", when(stored.expires_ms, looked.now_ms))
        }
        None => "The next run fetches robots.txt again".to_owned(),
    };
    Because::new(Cause::RobotsUnreachable, sentence).run(&next, crawl(job, ""))
}

fn ready(looked: &LookedUp, job: &JobLook, row: &ListedDocument) -> Because {
    let now_ms = looked.now_ms;
    if let Some(bin) = &looked.bin
        && let Some(until_ms) = bin.blocked_ms.filter(|until_ms| *until_ms > now_ms)
    {
        let why = bin.blocked_by.as_deref().map_or(String::new(), |code| {
            format!(" ({})", sentences::of(code).unwrap_or_else(|| code.to_owned()))
        });
        let sentence = format!(
            "Its host {} failed {} in a row{why} and is blocked; the next request is {}.",
            bin.name,
            count(bin.failures, "time"),
            when(until_ms, now_ms)
        );
        return Because::new(Cause::HostBlocked, sentence)
            .run("See the host", format!("driftline hosts {}", quoted(&bin.name)));
    }
    if let Some(event) = looked.events.first() {
        let sentence = format!("It waits until {event:?} is over.");
        return Because::new(Cause::Event, sentence);
    }
    if job.standing != RunState::Running {
        let sentence = "It is ready to be fetched, but no process is crawling the job.";
        return Because::new(Cause::NoCrawl, sentence).run("Continue", crawl(job, ""));
    }
    match looked.bin.as_ref().map(|bin| (bin, bin.next_ms - now_ms)) {
        Some((bin, wait_ms)) if wait_ms > 0 => Because::new(
            Cause::HostDelay,
            format!(
                "It is ready; the next request to its host {} is in {}, and the host has {} of \
                 all jobs.",
                bin.name,
                span(wait_ms),
                count(bin.documents, "document")
            ),
        ),
        _ if row.done_run.is_some() => {
            Because::new(Cause::Ready, "It is queued to be checked again.")
        }
        _ => Because::new(Cause::Ready, "It is queued to be fetched."),
    }
}

fn waiting(looked: &LookedUp, row: &ListedDocument) -> Because {
    let due = match row.check_ms {
        Some(check_ms) if check_ms > looked.now_ms => when(check_ms, looked.now_ms),
        _ => "now".to_owned(),
    };
    match (row.reason.as_deref(), &looked.job) {
        (None, _) => {
            let what = if row.action == Action::Expire { "expires" } else { "is checked again" };
            Because::new(Cause::Scheduled, format!("It was processed, and {what} {due}."))
        }
        (Some("gone"), _) => Because::new(
            Cause::Confirming,
            format!(
                "The server said that it is gone; a second request {due} confirms that. Until \
                 then it is kept."
            ),
        ),
        (Some("robots-unreachable"), Some(job)) => robots_unreachable(looked, job),
        (Some(_), _) => {
            let left = match row.failcount {
                Some(left) => format!(" ({} left)", counted(left, "try", "tries")),
                None => String::new(),
            };
            let sentence = format!("It failed: {}. It is retried {due}{left}.", words_of(row));
            Because::new(Cause::Retry, sentence)
        }
    }
}

fn active(looked: &LookedUp) -> Because {
    match &looked.holder {
        Some(holder) if holder.alive => {
            let node = holder.node_name.as_deref().unwrap_or("an unknown node");
            let since = when(holder.claimed_ms, looked.now_ms);
            Because::new(Cause::Active, format!("It is being fetched by {node}, since {since}."))
        }
        _ => {
            Because::new(Cause::Stale, "A process was fetching it and has ended or lost its lease.")
                .next(
                    "The next process that works on its part queues it again; nothing needs to be \
                     done.",
                )
        }
    }
}
