//! Where lines stand: among those whose time will come, those whose time has come, and
//! those that could use documents.
//!
//! Invariant: after every change of a host its lines stand where their state says; a
//! gate that many hosts share is looked at again when a line's turn has come.

use super::host::LineState;
use super::{Frontier, HostKey};
use store::ids::JobId;

impl<T> Frontier<T> {
    /// Lines whose time has come are ready.
    pub(super) fn promote(&mut self, now_ms: i64) {
        while let Some(&(at_ms, (key, job))) = self.later.first() {
            if at_ms > now_ms {
                return;
            }
            self.later.pop_first();
            let due_ms = self.due_ms(key, job);
            let host = self.hosts.get_mut(&key).expect("a host that is due is known");
            let line = host.line(job).expect("a line that is due is known");
            line.stand = LineState::Idle;
            if due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
                line.stand = LineState::Ready(line.turn);
                self.ready.entry(job).or_default().insert((line.turn, key));
                self.shares.ready(job, true);
            } else {
                self.settle(key);
            }
        }
    }

    /// Puts the lines of a host where their state says they belong, or forgets it.
    pub(super) fn settle(&mut self, key: HostKey) {
        let Some(count) = self.hosts.get(&key).map(|host| host.lines.len()) else { return };
        for at in 0..count {
            let line = &self.hosts[&key].lines[at];
            let job = line.job;
            let due_ms = match line.waiting.is_empty() {
                true => None,
                false => self.due_ms(key, job),
            };
            let is_parked = !line.waiting.is_empty() && due_ms.is_none();
            if is_parked && self.hosts[&key].is_free() {
                self.gates.park((self.shares.connection(job), key.bin), key, job);
            }
            let stand = match (due_ms, line.stand) {
                (None, _) => LineState::Idle,
                // A line that is ready stays so: its turn has come.
                (Some(ms), LineState::Ready(turn) | LineState::Untried(turn))
                    if ms <= self.now_ms && turn == line.turn =>
                {
                    line.stand
                }
                (Some(ms), _) => LineState::Later(ms),
            };
            self.stand(key, at, stand);
            self.feed(key, at);
        }
        if self.hosts[&key].is_over() {
            self.hosts.remove(&key);
        }
    }

    /// Moves a line to where it stands now.
    fn stand(&mut self, key: HostKey, at: usize, stand: LineState) {
        let line = &mut self.hosts.get_mut(&key).expect("it is being settled").lines[at];
        let (job, before) = (line.job, std::mem::replace(&mut line.stand, stand));
        if before == stand {
            return;
        }
        match before {
            LineState::Idle => {}
            LineState::Later(ms) => {
                self.later.remove(&(ms, (key, job)));
            }
            LineState::Untried(turn) => {
                self.untried.remove(&(turn, (key, job)));
            }
            LineState::Ready(turn) => {
                let lines = self.ready.entry(job).or_default();
                lines.remove(&(turn, key));
                if lines.is_empty() {
                    self.ready.remove(&job);
                    self.shares.ready(job, false);
                }
            }
        }
        match stand {
            LineState::Later(ms) => {
                self.later.insert((ms, (key, job)));
            }
            LineState::Untried(turn) => {
                self.untried.insert((turn, (key, job)));
            }
            // `promote` makes lines ready.
            LineState::Ready(_) | LineState::Idle => {}
        }
    }

    /// A line waits until there are slots for hosts that have not answered promptly.
    pub(super) fn leave_out(&mut self, key: HostKey, job: JobId) {
        let Some(host) = self.hosts.get(&key) else { return };
        if let Some(at) = host.lines.iter().position(|line| line.job == job) {
            self.stand(key, at, LineState::Untried(host.lines[at].turn));
        }
    }

    /// Lines that were left out come back, as many as there are slots for them.
    pub(super) fn take_in(&mut self, now_ms: i64) {
        for _ in 0..self.slots.free_untried(now_ms) {
            let Some(&(_, (key, _))) = self.untried.first() else { return };
            self.take_in_host(key);
        }
    }

    /// The lines of a host that were left out come back.
    pub(super) fn take_in_host(&mut self, key: HostKey) {
        let Some(count) = self.hosts.get(&key).map(|host| host.lines.len()) else { return };
        for at in 0..count {
            if let LineState::Untried(_) = self.hosts[&key].lines[at].stand {
                self.stand(key, at, LineState::Idle);
            }
        }
        self.settle(key);
    }

    /// Says whether a line could use documents.
    fn feed(&mut self, key: HostKey, at: usize) {
        let (host, enough) = (&self.hosts[&key], self.enough(key, self.hosts[&key].lines[at].job));
        let line = &host.lines[at];
        let hungry = !line.exhausted && line.requested == 0 && line.waiting.len() < enough;
        let gate_ms = self.gates.due_ms((self.shares.connection(line.job), key.bin));
        let due_ms = host.politeness.next_ms.max(gate_ms.unwrap_or(i64::MIN));
        let hungry_at = hungry.then_some((!line.waiting.is_empty(), due_ms, line.waiting.len()));
        let (job, before) = (line.job, line.hungry_at);
        if before == hungry_at {
            return;
        }
        let lines = self.hungry.entry(job).or_default();
        if let Some(at) = before {
            lines.remove(&(at, key));
        }
        if let Some(at) = hungry_at {
            lines.insert((at, key));
        }
        if lines.is_empty() {
            self.hungry.remove(&job);
        }
        self.hosts.get_mut(&key).expect("it is being settled").lines[at].hungry_at = hungry_at;
    }

    /// Takes out what waits at a host, of a job or of all.
    pub(super) fn drain(&mut self, key: HostKey, job: Option<JobId>, exhausted: bool) -> Vec<T> {
        let Some(host) = self.hosts.get_mut(&key) else { return Vec::new() };
        let mut drained = Vec::new();
        for line in host.lines.iter_mut().filter(|line| job.is_none_or(|job| line.job == job)) {
            self.shares.release(line.job, line.waiting.len());
            drained.extend(line.waiting.drain(..));
            line.exhausted |= exhausted;
        }
        self.settle(key);
        drained
    }
}
