//! Jobs in the frontier: they share by weight, and none waits for ever.

use super::*;

/// Jobs by priority, each with documents without end at a bin of its own or at one that
/// they share.
struct Jobs {
    frontier: Frontier<Document>,
    priorities: Vec<i64>,
    now_ms: i64,
}

impl Jobs {
    fn new(priorities: &[i64], shared: Option<i64>) -> Jobs {
        let mut frontier = Frontier::new(FrontierLimits { in_flight_max: 1, ..LIMITS });
        let mut jobs = Jobs { frontier: Frontier::new(LIMITS), priorities: Vec::new(), now_ms: 0 };
        for (job, priority) in (1..).zip(priorities) {
            frontier.set_job(JobId(job), ConnectionId(0), *priority);
            let (bin, delay_ms) = shared.map_or((job, 0), |delay_ms| (0, delay_ms));
            let politeness = Politeness { delay_ms, next_ms: 0 };
            frontier.add_work(key(bin), JobId(job), politeness, Pace::default());
        }
        (jobs.frontier, jobs.priorities) = (frontier, priorities.to_vec());
        jobs
    }

    /// The job that is served next, of those that have something.
    fn turn(&mut self, has: impl Fn(i64) -> bool) -> i64 {
        loop {
            for want in self.frontier.wants(self.now_ms, true, |_| true) {
                let count = if has(want.job.0) { want.documents } else { 0 };
                self.frontier.claimed(want, vec![(0, want.job.0); count], false);
            }
            match self.frontier.next(self.now_ms) {
                Next::Fetch(host, (_, job)) => {
                    let delay_ms = self.frontier.hosts[&host].politeness.delay_ms;
                    let ended = pause(self.now_ms, delay_ms, 0);
                    self.frontier.finished(spot(host, JobId(job)), ended);
                    self.frontier.committed(1);
                    return job;
                }
                Next::WaitUntil(ms) => self.now_ms = self.now_ms.max(ms).max(self.now_ms + 1),
                Next::Wait => panic!("somebody has something"),
            }
        }
    }

    fn stride(&self, job: usize) -> u64 {
        stride_of(self.priorities[job - 1])
    }

    /// Serves so many turns, and checks after each that nobody is ahead of its weight.
    fn serve(&mut self, turns: usize) -> Vec<u64> {
        let mut counts = vec![0; self.priorities.len() + 1];
        let mut waits = counts.clone();
        let others = self.priorities.len() as u64 - 1;
        for _ in 0..turns {
            let job = self.turn(|_| true) as usize;
            counts[job] += 1;
            waits.iter_mut().for_each(|wait| *wait += 1);
            assert!(waits[job] <= others * (STRIDE_MAX + 1) + 1, "job {job}: {}", waits[job]);
            waits[job] = 0;
            for (one, other) in [(job, 1), (job, self.priorities.len())] {
                let had = |job: usize| counts[job] * self.stride(job);
                let bound = self.stride(one) + self.stride(other);
                assert!(had(one).abs_diff(had(other)) <= bound, "{counts:?}");
            }
        }
        assert!(waits[1..].iter().all(|wait| *wait <= others * (STRIDE_MAX + 1)), "{waits:?}");
        counts.split_off(1)
    }
}

#[test]
fn jobs_share_what_there_is_by_weight_and_the_lowest_is_served_too() {
    let counts = Jobs::new(&[1, 3, 10], None).serve(6_410);
    assert_eq!(counts, [5_120, 1_280, 10], "512 to 128 to 1");
}

#[test]
fn jobs_of_one_host_share_it_likewise() {
    let counts = Jobs::new(&[4, 5], Some(100)).serve(300);
    assert_eq!(counts, [200, 100]);
    assert_eq!(Jobs::new(&[1, 10], Some(100)).serve(5 * 513), [5 * 512, 5]);
}

#[test]
fn jobs_of_equal_priority_take_turns() {
    let mut jobs = Jobs::new(&[5, 5, 5], None);
    let order: Vec<i64> = (0..6).map(|_| jobs.turn(|_| true)).collect();
    assert_eq!(order, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_job_that_had_nothing_to_do_does_not_make_up_for_it() {
    let mut jobs = Jobs::new(&[5, 5], None);
    for _ in 0..1_000 {
        assert_eq!(jobs.turn(|job| job == 1), 1);
    }
    let later: Vec<i64> = (0..10).map(|_| jobs.turn(|_| true)).collect();
    let second = later.iter().filter(|job| **job == 2).count();
    assert!((4..=6).contains(&second), "{later:?}");
}

#[test]
fn a_job_that_is_held_up_does_not_keep_all_claims() {
    let mut frontier: Frontier<Document> = Frontier::new(LIMITS);
    // Nothing of the first ever ends.
    frontier.set_connection(ConnectionId(1), 1);
    for (job, connection) in [(1, 1), (2, 2)] {
        frontier.set_job(JobId(job), ConnectionId(connection), 5);
    }
    let mut served = 0;
    for round in 0..100 {
        for bin in 10..40 {
            frontier.add_work(key(bin), JobId(1), FREE, Pace::default());
        }
        if round > 5 {
            frontier.add_work(key(2), JobId(2), FREE, Pace::default());
        }
        for want in frontier.wants(round, true, |_| true) {
            frontier.claimed(want, vec![(0, want.job.0); want.documents], false);
        }
        while let Next::Fetch(host, (_, job)) = frontier.next(round) {
            if job == 2 {
                let its = Spot { host, job: JobId(2), connection: ConnectionId(2) };
                frontier.finished(its, pause(round, 0, 0));
                frontier.committed(1);
                served += 1;
            }
        }
    }
    assert!(served > 100, "{served} documents of the job that could go on");
}

#[test]
fn a_job_is_forgotten_with_what_it_had() {
    let mut jobs = Jobs::new(&[5, 5], None);
    jobs.turn(|_| true);
    let dropped = jobs.frontier.forget(Part(0), Some(JobId(2)));
    assert!(!dropped.is_empty());
    jobs.frontier.committed(dropped.len());
    jobs.frontier.forget_job(JobId(2));
    assert!((0..50).all(|_| jobs.turn(|_| true) == 1));
}
