//! A host and the lines of jobs that wait at it.
//!
//! Pure bookkeeping of the frontier. Invariant: within a host that can serve only one
//! after the other, jobs take turns by their strides.

use super::{HostKey, OpenRequest, Politeness, SLOW_MS};
use std::collections::VecDeque;
use store::ids::{BinId, JobId, Part};

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LineState {
    /// Nowhere: it has nothing, or something must end first.
    #[default]
    Idle,
    /// Among those whose time will come.
    Later(i64),
    /// Among those whose time has come, by its turn.
    Ready(u64),
    /// Its time has come, and hosts that have not answered promptly have no slot left.
    Untried(u64),
}

/// What one job has at a host.
pub(super) struct Line<T> {
    pub job: JobId,
    pub waiting: VecDeque<T>,
    pub in_flight: usize,
    /// The database had nothing more when it was last asked.
    pub exhausted: bool,
    /// So many documents are being asked for.
    pub requested: usize,
    /// What it has had of this host.
    pub pass: u64,
    /// Its place among the lines of its job: the one that was served longest ago first.
    pub turn: u64,
    pub stand: LineState,
    /// The key it stands under among those that could use documents.
    pub hungry_at: Option<Hunger>,
}

impl<T> Line<T> {
    fn new(job: JobId, turn: u64, pass: u64) -> Line<T> {
        Line {
            job,
            waiting: VecDeque::new(),
            in_flight: 0,
            exhausted: false,
            requested: 0,
            pass,
            turn,
            stand: LineState::Idle,
            hungry_at: None,
        }
    }

    /// Whether nothing of it is here and nothing can come.
    fn is_over(&self) -> bool {
        self.exhausted && self.requested == 0 && self.waiting.is_empty() && self.in_flight == 0
    }
}

pub(super) struct FrontierHost<T> {
    pub politeness: Politeness,
    pub lines: Vec<Line<T>>,
    pub in_flight: usize,
    /// The requests under way, oldest first.
    requests: VecDeque<OpenRequest>,
    /// Whether its last answer came promptly.
    pub is_prompt: bool,
    /// Nothing may start until something else was asked: robots.txt.
    pub held: bool,
    /// Nothing may start until somebody says so: a login is under way.
    pub closed: bool,
    /// Where the line stood that was served last.
    pub clock: u64,
}

impl<T> FrontierHost<T> {
    pub fn new(politeness: Politeness) -> FrontierHost<T> {
        FrontierHost {
            politeness,
            lines: Vec::new(),
            in_flight: 0,
            requests: VecDeque::new(),
            is_prompt: false,
            held: false,
            closed: false,
            clock: 0,
        }
    }

    pub fn line(&mut self, job: JobId) -> Option<&mut Line<T>> {
        self.lines.iter_mut().find(|line| line.job == job)
    }

    /// The line of a job, which may be new.
    pub fn line_or_new(&mut self, job: JobId, turn: u64) -> &mut Line<T> {
        let at = self.lines.iter().position(|line| line.job == job).unwrap_or_else(|| {
            self.lines.push(Line::new(job, turn, self.clock));
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    /// Whether nothing but its clock keeps it from being asked.
    pub fn is_free(&self) -> bool {
        !self.held && !self.closed && (self.in_flight == 0 || self.politeness.delay_ms == 0)
    }

    /// Documents have come for a line; one that had none joins where the others are.
    pub fn fill(&mut self, job: JobId, documents: impl IntoIterator<Item = T>) {
        let clock = self.clock;
        if let Some(line) = self.line(job) {
            if line.waiting.is_empty() {
                line.pass = line.pass.max(clock);
            }
            line.waiting.extend(documents);
        }
    }

    /// Takes the next document of a job, which moves on by its stride.
    pub fn take(
        &mut self,
        job: JobId,
        stride: u64,
        turn: u64,
        now_ms: i64,
    ) -> Option<(T, OpenRequest)> {
        let line = self.line(job)?;
        let document = line.waiting.pop_front()?;
        let at = line.pass;
        line.pass = at.saturating_add(stride);
        line.turn = turn;
        line.in_flight += 1;
        self.clock = self.clock.max(at);
        self.in_flight += 1;
        let request = OpenRequest { begun_ms: now_ms, is_prompt: self.is_prompt };
        self.requests.push_back(request);
        Some((document, request))
    }

    /// A request of a job has ended. Returns which; of several that overlap, the oldest.
    pub fn ended(&mut self, job: JobId) -> Option<OpenRequest> {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(line) = self.line(job) {
            line.in_flight = line.in_flight.saturating_sub(1);
        }
        self.requests.pop_front()
    }

    /// An answer has come.
    pub fn answered(&mut self, ended_ms: i64) {
        let begun_ms = self.requests.front().map(|it| it.begun_ms);
        self.is_prompt = begun_ms.is_some_and(|begun_ms| ended_ms - begun_ms < SLOW_MS);
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        self.politeness.next_ms = self.politeness.next_ms.saturating_add(jump_ms);
        for request in &mut self.requests {
            request.begun_ms = request.begun_ms.saturating_add(jump_ms);
        }
    }

    /// Whether it can be forgotten.
    pub fn is_over(&self) -> bool {
        self.in_flight == 0 && self.lines.iter().all(Line::is_over)
    }
}

/// How much a line could use documents: whether it has any, when it needs the next, how
/// many it has.
pub(super) type Hunger = (bool, i64, usize);

/// Where those begin that have something.
pub(super) const FED: (Hunger, HostKey) =
    ((true, i64::MIN, 0), HostKey { part: Part(i64::MIN), bin: BinId(i64::MIN) });

/// A line: a job at a host.
pub(super) type LineKey = (HostKey, JobId);
