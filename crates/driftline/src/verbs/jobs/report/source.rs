//! Whose rows a report is about, which of them, and from where on: the question, read.
//!
//! Invariants: what a flag names exists, or the answer is a sentence that says so; rows are
//! read in pages, each a short transaction, so that no report holds up who writes.

use super::classes::{Classes, expression};
use super::columns::{Column, ColumnKind};
use super::selection::{Cursor, Key, Row, RowPage, Selection, SortValue};
use super::{ROWS_MAX, ReportRequest, ReportResponse, RowOrder};
use crate::refusal::{OrRefuse, refuse};
use crate::text::shown;
use data_encoding::BASE64URL_NOPAD;
use page::ids::hash128;
use regex::Regex;
use std::collections::BTreeMap;
use store::Db;
use store::ids::{ConnectionId, JobId, Run};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::document_status::JobConditions;
use store::tables::history::{self, Activity, ActivityQuery};
use store::tables::job_states;
use store::tables::jobs::{self, Job};

/// Rows that one transaction reads.
pub const PAGE: u32 = 2_000;
/// Connections that are named when one has to be chosen.
const NAMED_MAX: u32 = 20;
/// Jobs that are read at once, and at most.
const JOBS_PAGE: u32 = 500;
const JOBS_MAX: usize = 10_000;

/// A job that a report is about.
pub struct Of {
    pub name: String,
    /// What decides about its documents.
    pub ground: JobConditions,
    pub run: Run,
    /// Whether it was asked for.
    pub wanted: bool,
}

/// A question with what it is about.
pub struct ReportQuery<'a> {
    pub db: &'a Db,
    pub request: &'a ReportRequest,
    /// When it is answered.
    pub now_ms: i64,
    pub connection: Connection,
    /// All jobs of the connection.
    pub jobs: BTreeMap<JobId, Of>,
    /// What tells identifiers apart.
    pub classes: Classes,
    cursor: Option<Cursor>,
    question: String,
    matching: Option<Regex>,
    result: Option<Regex>,
}

/// A time that a report covers: from a moment on, and before another.
#[derive(Debug, Clone, Copy)]
pub struct TimeRange {
    pub since_ms: i64,
    pub until_ms: i64,
}

impl TimeRange {
    pub const ALWAYS: TimeRange = TimeRange { since_ms: i64::MIN, until_ms: i64::MAX };
}

impl ReportQuery<'_> {
    pub fn open<'a>(
        db: &'a Db,
        request: &'a ReportRequest,
        now_ms: i64,
    ) -> anyhow::Result<ReportQuery<'a>> {
        let connection = connection(db, request)?;
        let jobs = jobs_of(db, &connection, &request.job)?;
        let question = question(connection.id, request);
        let cursor =
            request.cursor.as_deref().map(|text| Cursor::read(text, &question)).transpose()?;
        let compiled = |flag, text: &Option<String>| -> anyhow::Result<Option<Regex>> {
            text.as_deref().map(|text| expression(flag, text)).transpose()
        };
        Ok(ReportQuery {
            db,
            request,
            now_ms,
            connection,
            jobs,
            classes: Classes::new("--class", request.class.as_deref())?,
            cursor,
            question,
            matching: compiled("--match", &request.matching)?,
            result: compiled("--result", &request.result)?,
        })
    }

    /// The column that rows are ordered by, if it is one, and whether the largest is first.
    pub fn order(&self) -> anyhow::Result<(Option<&'static Column>, bool)> {
        let report = self.request.report;
        let Some(name) = self.request.sort.as_deref().or(report.usual_order()) else {
            return Ok((None, self.request.order == Some(RowOrder::Desc)));
        };
        let Some(column) = report.column(name) else {
            let names = report.columns().iter().filter(|it| it.kind != ColumnKind::Rate);
            let names: Vec<&str> = names.map(|it| it.name).collect();
            refuse!("there is no column {name:?} to order by; there are {}", names.join(", "));
        };
        let usual = if column.kind == ColumnKind::Text { RowOrder::Asc } else { RowOrder::Desc };
        Ok((Some(column), self.request.order.unwrap_or(usual) == RowOrder::Desc))
    }

    /// Where the cursor stands, and whether it goes back.
    pub fn from(&self) -> Option<(Key, bool)> {
        self.cursor.as_ref().map(|cursor| (cursor.key.clone(), cursor.backward))
    }

    /// A page in the order that was asked for.
    pub fn selection(&self) -> anyhow::Result<Selection> {
        Ok(Selection::new(self.request.limit(), self.order()?.1, self.from()))
    }

    /// A row's place in the order that was asked for.
    pub fn key(&self, row: &Row, ties: impl IntoIterator<Item = SortValue>) -> anyhow::Result<Key> {
        let mut key = Key::new();
        if let Some(column) = self.order()?.0 {
            key.push(row.get(column.name).map_or(SortValue::None, SortValue::from));
        }
        key.extend(ties);
        Ok(key)
    }

    /// Rows that may be looked at.
    pub fn rows_max(&self) -> u64 {
        if self.request.whole { u64::MAX } else { ROWS_MAX }
    }

    /// The time that is covered, as it was asked for; open ends are the ends of time.
    pub fn asked_range(&self) -> TimeRange {
        match &self.cursor {
            Some(it) => TimeRange { since_ms: it.since_ms, until_ms: it.until_ms },
            None => TimeRange {
                since_ms: self.request.since_ms.unwrap_or(i64::MIN),
                until_ms: self.request.until_ms.unwrap_or(i64::MAX),
            },
        }
    }

    /// The time that is covered by a report that looks at every activity: as it was asked
    /// for, or as far back as it can look.
    pub fn bounded_range(&self) -> anyhow::Result<TimeRange> {
        let TimeRange { since_ms, until_ms } = self.asked_range();
        if self.cursor.is_some() || self.request.whole || self.request.since_ms.is_some() {
            return Ok(TimeRange { since_ms, until_ms: until_ms.min(self.now_ms + 1) });
        }
        let until_ms = until_ms.min(self.now_ms + 1);
        let (connection, rows_max) = (self.connection.id, ROWS_MAX as u32);
        let reach = self.db.read(move |tx| history::reach(tx, connection, until_ms, rows_max))?;
        Ok(TimeRange { since_ms: reach.unwrap_or(i64::MIN), until_ms })
    }

    /// Hands over every activity of a time that was asked for, the oldest first. Returns how
    /// many were looked at.
    pub fn each_activity(
        &self,
        range: TimeRange,
        mut take: impl FnMut(&Activity) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let TimeRange { since_ms, until_ms } = range;
        let walk = ActivityQuery {
            connection: self.connection.id,
            since_ms,
            until_ms,
            newest_first: false,
        };
        let (mut after, mut walked) = (walk.start(), 0);
        loop {
            let page = self.db.read(move |tx| history::page(tx, &walk, after, PAGE))?;
            let is_last = page.len() < PAGE as usize;
            for it in &page {
                walked += 1;
                self.check_walked(walked)?;
                if self.takes(it) {
                    take(it)?;
                }
                after = (it.start_ms, it.id);
            }
            if is_last {
                return Ok(walked);
            }
        }
    }

    /// Refuses to look at more than is allowed.
    pub fn check_walked(&self, walked: u64) -> anyhow::Result<()> {
        if walked <= self.rows_max() {
            return Ok(());
        }
        let narrower = match self.request.report.has_time() {
            true => {
                "choose a shorter time with --since and --until, or omit --since to see the newest"
            }
            false => "omit --sort, --class and --match",
        };
        refuse!(
            "there are more than {ROWS_MAX} rows to read; {narrower}; or read all of them with \
             --whole, which takes a few seconds for a million"
        )
    }

    /// Whether an activity was asked for.
    pub fn takes(&self, it: &Activity) -> bool {
        let kinds = &self.request.activity;
        self.takes_job(it.job)
            && (kinds.is_empty() || kinds.contains(&it.kind))
            && self.takes_result(it.result.as_deref().unwrap_or_default())
            && self.takes_identifier(&it.entity)
    }

    /// Whether what is of a job was asked for.
    pub fn takes_job(&self, job: Option<JobId>) -> bool {
        self.request.job.is_empty()
            || job.and_then(|job| self.jobs.get(&job)).is_some_and(|job| job.wanted)
    }

    /// Whether a result was asked for.
    pub fn takes_result(&self, result: &str) -> bool {
        self.result.as_ref().is_none_or(|expression| expression.is_match(result))
    }

    /// Whether an identifier was asked for.
    pub fn takes_identifier(&self, identifier: &str) -> bool {
        self.matching.as_ref().is_none_or(|expression| expression.is_match(identifier))
    }

    /// The name of a job, if it is there.
    pub fn job_name(&self, job: Option<JobId>) -> Option<&str> {
        job.and_then(|job| self.jobs.get(&job)).map(|job| job.name.as_str())
    }

    /// The answer: a page, the time it covers, and how many rows were looked at.
    pub fn answer(
        &self,
        page: RowPage,
        range: TimeRange,
        walked: u64,
    ) -> anyhow::Result<ReportResponse> {
        let TimeRange { since_ms, until_ms } = range;
        let cursor = |key: Option<Key>, backward| -> anyhow::Result<Option<String>> {
            let question = self.question.clone();
            key.map(|key| Cursor { question, key, backward, since_ms, until_ms }.write())
                .transpose()
        };
        Ok(ReportResponse {
            report: self.request.report,
            connection: self.connection.name.clone(),
            since_ms: Some(since_ms).filter(|ms| *ms != i64::MIN),
            until_ms: Some(until_ms).filter(|ms| *ms != i64::MAX),
            next: cursor(page.next, false)?,
            previous: cursor(page.previous, true)?,
            rows: page.rows,
            walked,
            outages: Vec::new(),
        })
    }
}

/// The connection that is meant: the one that is named, that of the jobs, or the only one.
fn connection(db: &Db, request: &ReportRequest) -> anyhow::Result<Connection> {
    if let Some(name) = request.connection.clone() {
        let found = db.read({
            let name = name.clone();
            move |tx| connections::find(tx, ConnectionKind::Repository, &name)
        })?;
        let unknown = || {
            let lists = "`driftline connection list` lists them";
            format!("there is no repository connection named {}; {lists}", shown(&name))
        };
        return Ok(found.or_refuse(unknown)?);
    }
    if let Some(name) = request.job.first().cloned() {
        let job = job_named(db, &name)?;
        let found = db.read(move |tx| connections::load(tx, job.connection))?;
        let found = found.map(|(_, it)| it);
        return Ok(found.or_refuse(|| "its repository connection is gone")?);
    }
    let mut all = db.read(|tx| connections::list(tx, ConnectionKind::Repository, "", NAMED_MAX))?;
    match all.len() {
        0 => refuse!(
            "there is no repository connection yet; a crawl creates one: driftline crawl URL"
        ),
        1 => Ok(all.remove(0)),
        _ => {
            let names: Vec<String> = all.iter().map(|it| shown(&it.name)).collect();
            refuse!(
                "there is more than one repository connection; choose one with --connection: {}",
                names.join(", ")
            )
        }
    }
}

fn job_named(db: &Db, name: &str) -> anyhow::Result<Job> {
    let wanted = name.to_owned();
    let found = db.read(move |tx| jobs::find(tx, &wanted))?;
    let unknown =
        || format!("there is no job named {}; `driftline job list` lists them", shown(name));
    Ok(found.or_refuse(unknown)?)
}

fn jobs_of(
    db: &Db,
    connection: &Connection,
    wanted: &[String],
) -> anyhow::Result<BTreeMap<JobId, Of>> {
    for name in wanted {
        let job = job_named(db, name)?;
        if job.connection != connection.id {
            refuse!(
                "job {} does not use connection {}; a report covers one connection",
                shown(name),
                shown(&connection.name)
            );
        }
    }
    let (mut found, mut after) = (BTreeMap::new(), String::new());
    loop {
        let name = after.clone();
        let id = connection.id;
        let page = db.read(move |tx| {
            let mut page = Vec::new();
            for job in jobs::list(tx, &name, JOBS_PAGE)? {
                let state = match job.connection == id {
                    true => Some(job_states::state(tx, job.id)?),
                    false => None,
                };
                page.push((job, state));
            }
            Ok(page)
        })?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        after.clone_from(&last.name);
        for (job, state) in page {
            let Some(state) = state else { continue };
            let ground = JobConditions { phase: state.phase, run_kind: state.run_kind };
            let wanted = wanted.is_empty() || wanted.contains(&job.name);
            found.insert(job.id, Of { name: job.name, ground, run: state.run, wanted });
        }
        if found.len() >= JOBS_MAX {
            return Ok(found);
        }
    }
}

/// A short name for what was asked, but for the page and the time, which are the cursor's.
fn question(connection: ConnectionId, request: &ReportRequest) -> String {
    let plain = ReportRequest {
        cursor: None,
        limit: None,
        since_ms: None,
        until_ms: None,
        ..request.clone()
    };
    let text = serde_json::to_string(&(connection.0, plain)).unwrap_or_default();
    BASE64URL_NOPAD.encode(&hash128(text.as_bytes())[..6])
}
