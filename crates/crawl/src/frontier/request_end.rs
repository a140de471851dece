//! What follows a request: its host may be asked again, its document waits for the commit, or
//! goes back to where it was.
//!
//! Invariant: every document that was started is told of here once, and its slot is free then.

use super::{Frontier, HostKey, Pause, Spot};

impl<T> Frontier<T> {
    /// The document just taken cannot be asked for before something else is: it goes
    /// back, and nothing of the host starts until [`Frontier::finished`]. The request
    /// that comes first takes the document's place among those under way.
    pub fn hold(&mut self, spot: Spot, document: T) {
        self.gates.take_back((spot.connection, spot.host.bin));
        self.shares.hold(spot.job, 1);
        if let Some(held) = self.hosts.get_mut(&spot.host) {
            held.held = true;
            if let Some(line) = held.line(spot.job) {
                line.waiting.push_front(document);
            }
        }
        self.settle(spot.host);
    }

    /// What has just started may not be asked for before a time, for a reason that is not the
    /// host's: it goes back to where it was, if it is a document, and the host waits. Returns
    /// the document if its line was forgotten meanwhile; it is claimed until it is given up.
    #[must_use]
    pub fn put_off(&mut self, spot: Spot, mut document: Option<T>, until_ms: i64) -> Option<T> {
        if document.is_some() {
            self.gates.take_back((spot.connection, spot.host.bin));
        }
        if let Some(host) = self.hosts.get_mut(&spot.host) {
            host.held = false;
            host.politeness.next_ms = host.politeness.next_ms.max(until_ms);
            if let Some(line) = host.line(spot.job)
                && let Some(document) = document.take()
            {
                line.waiting.push_front(document);
                self.shares.hold(spot.job, 1);
            }
        }
        self.ended(spot);
        document
    }

    /// Asks a host for nothing until it is opened again, whatever ends meanwhile.
    pub fn close(&mut self, host: HostKey, is_closed: bool) {
        if let Some(known) = self.hosts.get_mut(&host) {
            known.closed = is_closed;
        }
        self.settle(host);
    }

    /// A request has ended; the host may be asked again after its pause. Its document
    /// stays claimed until [`Frontier::committed`].
    pub fn finished(&mut self, spot: Spot, pause: Pause) {
        if let Some(host) = self.hosts.get_mut(&spot.host) {
            host.held = false;
            host.answered(pause.ended_ms);
            host.politeness.delay_ms = pause.delay_ms;
            let Pause { ended_ms, delay_ms, not_before_ms } = pause;
            let due_ms = if delay_ms == 0 { not_before_ms } else { ended_ms + delay_ms };
            // With overlapping requests an earlier end must not shorten a longer wait.
            host.politeness.next_ms = host.politeness.next_ms.max(due_ms).max(not_before_ms);
        }
        self.ended(spot);
    }

    /// A document that needed no request: its host is as free as before.
    pub fn skipped(&mut self, spot: Spot) {
        self.gates.take_back((spot.connection, spot.host.bin));
        self.ended(spot);
    }

    fn ended(&mut self, spot: Spot) {
        if let Some(host) = self.hosts.get_mut(&spot.host)
            && let Some(request) = host.ended(spot.job)
        {
            self.slots.release(request);
        }
        self.shares.ended(spot.connection);
        for (parked, _) in self.gates.ended((spot.connection, spot.host.bin)) {
            self.settle(parked);
        }
        match self.hosts.get(&spot.host).is_some_and(|host| host.is_prompt) {
            true => self.take_in_host(spot.host),
            false => self.settle(spot.host),
        }
    }
}
