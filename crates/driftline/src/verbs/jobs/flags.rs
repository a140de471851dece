//! What `job create` and `job edit` take beside a name.
//!
//! Invariant: a flag that is not given changes nothing; an empty one takes back what was
//! said.

mod pipeline;

use crate::catalog::typed;
use crate::definitions::{CONTINUOUS, JobForm, NotificationForm, SCAN_ONCE};
use crate::refusal::{OrRefuse, OrRefused, refuse, require};
use clap::Args;
use serde::{Deserialize, Serialize};
use store::catalog::Connector;
use store::tables::jobs::{HopcountMode, OnFailure, Refetch, StartMethod};

/// The flags, as they are written and as they go through a socket.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// tidy: wide every field is a flag of `job create` and `job edit`
pub struct JobFlags {
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// scan-once ends when every document is processed, continuous never ends [default: scan-once]
    #[arg(long = "type", value_name = "TYPE", value_parser = job_type)]
    kind: Option<String>,
    /// 1 (highest) to 10 [default: 5]
    #[arg(long, value_name = "N")]
    priority: Option<i64>,
    /// Shortest time between two checks of a document, such as 15min or 1d; "" disables revisits
    /// (continuous jobs)
    #[arg(long, value_name = "SPAN")]
    interval: Option<String>,
    /// Longest time between two checks of a document; "" for no limit (continuous jobs)
    #[arg(long, value_name = "SPAN")]
    max_interval: Option<String>,
    /// Time after which seeds are fetched again; "" disables it (continuous jobs)
    #[arg(long, value_name = "SPAN")]
    reseed: Option<String>,
    /// Time after which a document expires and is removed; "" disables it (continuous jobs)
    #[arg(long, value_name = "SPAN")]
    expire: Option<String>,
    /// What starts the job: manual, only a user; window-begin, its schedule, at the scheduled
    /// times; window-inside, also later while the window of a scheduled time is open, once per
    /// window [default: manual; window-begin with --schedule]
    #[arg(long, value_name = "METHOD", value_parser = start_method)]
    start_method: Option<String>,
    /// When the job starts by itself, such as 'hours=3 days=mon-fri zone=Europe/Berlin window=2h'.
    /// Keys: years, months, dates, days, hours, minutes (lists such as 0,30 or mon-fri, or *),
    /// zone, window (how long a run may take), repeat (start again in the same window this long
    /// after a run) and minimal (process only changed documents). Can be repeated; "" removes all
    #[arg(long, value_name = "TIMES")]
    schedule: Vec<String>,
    /// Limit the distance from the seeds by type of link, such as link=3; 'link=' removes the limit
    #[arg(long, value_name = "LINK=N")]
    hops: Vec<String>,
    /// How lost links affect the distance from the seeds (jobs with --hops): accurate drops them,
    /// so documents that are too far away without them are removed; no-delete keeps counting them;
    /// never-delete does too and stores no links, which costs less, but a change of mode must then
    /// learn them again [default: accurate]
    #[arg(long, value_name = "MODE", value_parser = hopcount)]
    hopcount: Option<String>,
    /// What to do if a document cannot be fetched: skip it, or abort the job [default: skip]
    #[arg(long, value_name = "POLICY", value_parser = on_failure)]
    on_failure: Option<String>,
    /// How many documents a run (of a continuous job: a day) may remove before removals are held: a
    /// percentage, or a number if that is more; off for no limit, "" for the default [default: 20%
    /// or 50]
    #[arg(long, value_name = "LIMIT")]
    #[serde(default)]
    removal_limit: Option<String>,
    /// How many of these are removed immediately if the server confirms it (404, noindex,
    /// robots.txt) [default: 2% or 20]
    #[arg(long, value_name = "LIMIT")]
    #[serde(default)]
    proven_removal_limit: Option<String>,
    /// How the next check of a document is scheduled: estimate uses how often it changes, formula
    /// the rule of ManifoldCF, fixed only the interval [default: estimate]
    #[arg(long, value_name = "POLICY", value_parser = refetch)]
    refetch: Option<String>,
    /// Most fetches per day; 0 for no limit
    #[arg(long, value_name = "N")]
    fetches_per_day: Option<i64>,
    /// Where documents go: an output connection, preceded by its transformations if any, such as
    /// text,copy. Can be repeated; "" removes all
    #[arg(long, value_name = "[TRANSFORMATION,]OUTPUT")]
    pipeline: Vec<String>,
    /// Notification connections to inform about the end of a run; "" removes all
    #[arg(long, value_name = "NAME")]
    notify: Vec<String>,
    /// Settings for the connector; `driftline connector show NAME` lists them
    #[arg(value_name = "SETTING=VALUE")]
    settings: Vec<String>,
}

fn job_type(text: &str) -> Result<String, String> {
    choice(&[SCAN_ONCE, CONTINUOUS], text)
}

fn start_method(text: &str) -> Result<String, String> {
    choice(StartMethod::NAMES, text)
}

fn hopcount(text: &str) -> Result<String, String> {
    choice(HopcountMode::NAMES, text)
}

fn on_failure(text: &str) -> Result<String, String> {
    choice(OnFailure::NAMES, text)
}

fn refetch(text: &str) -> Result<String, String> {
    choice(Refetch::NAMES, text)
}

/// One of some names; a dash may stand for a space, which a shell would need quotes for.
fn choice(names: &[&str], text: &str) -> Result<String, String> {
    let meant = text.replace('-', " ");
    if names.contains(&meant.as_str()) {
        return Ok(meant);
    }
    let names: Vec<String> = names.iter().map(|name| name.replace(' ', "-")).collect();
    Err(format!("give one of {}", names.join(", ")))
}

impl JobFlags {
    /// Changes a job by what was given.
    pub fn apply(&self, connector: &Connector, form: &mut JobForm) -> anyhow::Result<()> {
        if let Some(description) = &self.description {
            form.description.clone_from(description);
        }
        for (given, field) in [
            (&self.kind, &mut form.kind),
            (&self.start_method, &mut form.start),
            (&self.hopcount, &mut form.hopcount),
            (&self.on_failure, &mut form.on_failure),
            (&self.refetch, &mut form.refetch),
        ] {
            if let Some(given) = given {
                field.clone_from(given);
            }
        }
        form.priority = self.priority.unwrap_or(form.priority);
        if let Some(most) = self.fetches_per_day {
            form.fetches_per_day = (most != 0).then_some(most);
        }
        for (given, field) in [
            (&self.removal_limit, &mut form.removal_limit),
            (&self.proven_removal_limit, &mut form.proven_removal_limit),
        ] {
            if let Some(given) = given {
                *field = Some(given.clone()).filter(|it| !it.is_empty());
            }
        }
        self.apply_spans(form)?;
        self.apply_schedules(form);
        self.apply_hops(form)?;
        if !self.pipeline.is_empty() {
            form.pipeline = pipeline::read(&given(&self.pipeline), &form.pipeline)?;
        }
        if !self.notify.is_empty() {
            form.notifications = notifications(&given(&self.notify), &form.notifications);
        }
        Ok(typed::assign(connector.spec, &mut form.spec, &self.settings).or_refused()?)
    }

    fn apply_spans(&self, form: &mut JobForm) -> anyhow::Result<()> {
        let is_continuous = form.kind == CONTINUOUS;
        for (flag, given, field) in [
            ("--interval", &self.interval, &mut form.recrawl_ms),
            ("--max-interval", &self.max_interval, &mut form.recrawl_max_ms),
            ("--reseed", &self.reseed, &mut form.reseed_ms),
            ("--expire", &self.expire, &mut form.expiration_ms),
        ] {
            let Some(given) = given else { continue };
            *field = match given.as_str() {
                "" => None,
                _ if !is_continuous => refuse!(
                    "{flag} is for continuous jobs, and this one scans once; add --type \
                     continuous, or omit it"
                ),
                text => Some(span(flag, text)?),
            };
        }
        if let (Some(least), Some(most)) = (form.recrawl_ms, form.recrawl_max_ms) {
            require!(least <= most, "--interval is longer than --max-interval; swap them");
        }
        Ok(())
    }

    fn apply_schedules(&self, form: &mut JobForm) {
        if self.schedule.is_empty() {
            return;
        }
        form.schedules = given(&self.schedule);
        // A schedule that starts nothing is not what somebody means who gives one.
        let is_manual = form.start == StartMethod::Manual.name();
        if is_manual && self.start_method.is_none() && !form.schedules.is_empty() {
            form.start = StartMethod::WindowBegin.name().to_owned();
        }
    }

    fn apply_hops(&self, form: &mut JobForm) -> anyhow::Result<()> {
        for text in &self.hops {
            let (link, most) = text.split_once('=').unwrap_or((text, "?"));
            if most.is_empty() {
                form.hops.remove(link);
                continue;
            }
            let most: i64 = most.parse().ok().filter(|most| *most >= 0).or_refuse(|| {
                format!(
                    "--hops {text:?} cannot be read; write a type of link and a number, such \
                     as link=3"
                )
            })?;
            form.hops.insert(link.to_owned(), most);
        }
        Ok(())
    }
}

/// All that were given; an empty one stands for none.
fn given(texts: &[String]) -> Vec<String> {
    texts.iter().filter(|text| !text.is_empty()).cloned().collect()
}

/// A span of time, whose unit must be said.
fn span(flag: &str, text: &str) -> anyhow::Result<i64> {
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    let ms = typed::milliseconds(text).filter(|ms| has_unit && *ms > 0);
    Ok(ms
        .or_refuse(|| format!("{flag} is a duration such as 15min, 1h30min or 1d, not {text:?}"))?)
}

/// Notifications by the names of their connections; those that were there keep what else
/// is said of them.
fn notifications(names: &[String], before: &[NotificationForm]) -> Vec<NotificationForm> {
    let known = |name: &String| before.iter().find(|it| it.connection == *name).cloned();
    let new = |name: &String| NotificationForm {
        connection: name.clone(),
        description: None,
        spec: serde_json::json!({}),
    };
    names.iter().map(|name| known(name).unwrap_or_else(|| new(name))).collect()
}

#[cfg(test)]
mod tests;
