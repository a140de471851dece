//! The clock of one request.
//!
//! One timer serves every limit: it is set to the nearest of them, and moved only
//! when it fires or when a nearer one appears, not with every piece of a body.
//! Waits of our own move them all. Invariant: no wait on the network lasts beyond the limit that it falls under.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, timeout};

use super::limits::Limits;
use super::outcome::Reason;

/// Watches over a request from its first wait to its last.
pub(super) struct Watch<'a> {
    timer: Pin<&'a mut Sleep>,
    limits: &'a Limits,
    total_until: Instant,
    until: Instant,
    on_end: Reason,
    body: Option<Progress>,
    /// What we have waited by ourselves.
    rested: Duration,
}

/// How a body comes in.
struct Progress {
    last_at: Instant,
    window_at: Instant,
    window_bytes: u64,
}

impl<'a> Watch<'a> {
    /// Starts the clock. The timer may be set to anything.
    pub fn new(timer: Pin<&'a mut Sleep>, limits: &'a Limits) -> Watch<'a> {
        let total_until = Instant::now() + limits.total;
        let (until, on_end) = (total_until, Reason::TotalTimeout);
        let (body, rested) = (None, Duration::ZERO);
        Watch { timer, limits, total_until, until, on_end, body, rested }
    }

    /// Waits for something that is no body, at most `limit` from now.
    pub async fn within<F: Future>(
        &mut self,
        limit: Duration,
        on_end: Reason,
        wanted: F,
    ) -> Result<F::Output, Reason> {
        self.body = None;
        self.until = Instant::now() + limit;
        self.on_end = on_end;
        let mut wanted = pin!(wanted);
        poll_fn(|cx| match wanted.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_over(cx).map(Err),
        })
        .await
    }

    /// From now on a body comes in.
    pub fn begin_body(&mut self) {
        let now = Instant::now();
        self.body = Some(Progress { last_at: now, window_at: now, window_bytes: 0 });
    }

    /// A piece of the body has come. Empty ones are no progress.
    pub fn count(&mut self, bytes: usize) {
        if let Some(body) = self.body.as_mut().filter(|_| bytes > 0) {
            body.last_at = Instant::now();
            body.window_bytes += bytes as u64;
        }
    }

    /// Waits by ourselves: no limit that is about the server moves on meanwhile. There is
    /// a limit to that, too.
    pub async fn rest(&mut self, wait: Duration) -> Result<(), Reason> {
        if self.rested + wait > self.limits.paced {
            return Err(Reason::TotalTimeout);
        }
        self.rest_while(sleep(wait)).await
    }

    /// The same for something of our own that takes its time.
    pub async fn rest_while<F: Future>(&mut self, wanted: F) -> Result<F::Output, Reason> {
        let begun = Instant::now();
        let left = self.limits.paced.saturating_sub(self.rested);
        let output = timeout(left, wanted).await.map_err(|_| Reason::TotalTimeout)?;
        let rested = begun.elapsed();
        self.rested += rested;
        self.total_until += rested;
        if let Some(body) = &mut self.body {
            body.last_at += rested;
            body.window_at += rested;
        }
        Ok(output)
    }

    /// Ready with the reason as soon as a limit is passed. Called while waiting.
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Reason> {
        loop {
            let next = self.next_limit();
            if next < self.timer.deadline() {
                self.timer.as_mut().reset(next);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(reason) = self.passed(Instant::now()) {
                return Poll::Ready(reason);
            }
            let next = self.next_limit();
            self.timer.as_mut().reset(next);
        }
    }

    fn next_limit(&self) -> Instant {
        let nearest = match &self.body {
            None => self.until,
            Some(body) => {
                (body.last_at + self.limits.idle).min(body.window_at + self.limits.rate_window)
            }
        };
        nearest.min(self.total_until)
    }

    /// The limit that is passed, if one is; otherwise a new stretch may begin.
    fn passed(&mut self, now: Instant) -> Option<Reason> {
        if now >= self.total_until {
            return Some(Reason::TotalTimeout);
        }
        let Some(body) = &mut self.body else {
            return (now >= self.until).then_some(self.on_end);
        };
        if now >= body.last_at + self.limits.idle {
            return Some(Reason::IdleTimeout);
        }
        if now >= body.window_at + self.limits.rate_window {
            if body.window_bytes < self.limits.rate_bytes {
                return Some(Reason::TooSlow);
            }
            (body.window_at, body.window_bytes) = (now, 0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use tokio::time::interval;

    use super::*;

    /// A body that brings `bytes` every `every`, watched until it is given up.
    async fn given_up(limits: &Limits, bytes: usize, every: Duration) -> (Reason, Duration) {
        let begun = Instant::now();
        let timer = pin!(sleep(limits.total));
        let mut watch = Watch::new(timer, limits);
        watch.begin_body();
        let mut drip = interval(every);
        let reason = poll_fn(|cx| {
            while drip.poll_tick(cx).is_ready() {
                watch.count(bytes);
            }
            watch.poll_over(cx)
        });
        (reason.await, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_drip_is_given_up_by_its_rate_and_a_stream_by_the_total() {
        let limits = Limits::default();
        let second = Duration::from_secs(1);
        let drip = given_up(&limits, 1, second).await;
        assert_eq!(drip, (Reason::TooSlow, limits.rate_window));
        let just_below = given_up(&limits, 950, second).await;
        assert_eq!(just_below, (Reason::TooSlow, limits.rate_window));
        let enough = given_up(&limits, 1_100, second).await;
        assert_eq!(enough, (Reason::TotalTimeout, limits.total));
        let in_steps = given_up(&limits, 20_000, 10 * second).await;
        assert_eq!(in_steps, (Reason::TotalTimeout, limits.total));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_counts_from_the_last_piece_and_empty_pieces_are_none() {
        let limits = Limits::default();
        let long = Duration::from_secs(1_000);
        assert_eq!(given_up(&limits, 1_000_000, long).await, (Reason::IdleTimeout, limits.idle));
        let empty = given_up(&limits, 0, Duration::from_secs(1)).await;
        assert_eq!(empty, (Reason::IdleTimeout, limits.idle));
        let pauses = given_up(&limits, 1_000_000, Duration::from_secs(14)).await;
        assert_eq!(pauses, (Reason::TotalTimeout, limits.total));
    }

    #[tokio::test(start_paused = true)]
    async fn waits_of_our_own_are_not_the_servers() {
        let limits = Limits::default();
        let begun = Instant::now();
        let timer = pin!(sleep(limits.total));
        let mut watch = Watch::new(timer, &limits);
        watch.begin_body();
        let rests = 5;
        for _ in 0..rests {
            watch.rest(limits.total).await.unwrap();
        }
        let reason = poll_fn(|cx| watch.poll_over(cx)).await;
        let waited = begun.elapsed() - limits.total * rests;
        assert_eq!((reason, waited), (Reason::IdleTimeout, limits.idle));
        assert_eq!(watch.rest(limits.paced).await, Err(Reason::TotalTimeout), "there is an end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_its_own_reason_or_with_the_total() {
        let limits = Limits::default();
        let begun = Instant::now();
        let timer = pin!(sleep(limits.total));
        let mut watch = Watch::new(timer, &limits);
        let waited = watch.within(limits.connect, Reason::ConnectTimeout, pending::<()>()).await;
        assert_eq!((waited, begun.elapsed()), (Err(Reason::ConnectTimeout), limits.connect));
        assert_eq!(watch.within(limits.connect, Reason::ConnectTimeout, async { 7 }).await, Ok(7));
        let forever = limits.total * 2;
        let waited = watch.within(forever, Reason::FirstByteTimeout, pending::<()>()).await;
        assert_eq!((waited, begun.elapsed()), (Err(Reason::TotalTimeout), limits.total));
    }
}
