//! The threads that compute answers, and the queue before them.
//!
//! Answers have a bounded share of the machine, so that callers cannot starve a crawl of the
//! same process. Invariants: at most [`AnswerPool::at_once`] answers are computed at a time; at
//! most [`WAITING_MAX`] wait, of one caller at most [`WAITING_OF_CALLER_MAX`], and others are
//! refused at once; callers who wait have turns, so that nobody waits for all that another has
//! asked.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::panics;

/// Requests that wait for a thread.
pub const WAITING_MAX: usize = 128;
/// Requests of one caller that wait: half, so that others find room.
pub const WAITING_OF_CALLER_MAX: usize = WAITING_MAX / 2;
/// Threads that compute answers, whatever is asked for.
pub const AT_ONCE_MAX: usize = 256;

/// How far answers stand back where a crawl wants the same core: a third of its share (nice).
const STANDS_BACK: i32 = 5;

/// Who calls: the number of a token.
pub type CallerId = i64;

/// An answer that is to be computed.
type Task = Box<dyn FnOnce() + Send>;

pub struct AnswerPool {
    at_once: usize,
    shared: Arc<PoolState>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct PoolState {
    queue: Mutex<Queue>,
    /// Somebody waits, an answer is done, or it is over.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Callers who wait, whose turn it is first, each with what they asked.
    turns: VecDeque<(CallerId, VecDeque<Task>)>,
    waiting: usize,
    busy: usize,
    is_ended: bool,
}

/// Half of the cores, since a crawl needs the others; at least two, so that nobody waits for
/// one question that takes long.
pub fn beside_a_crawl() -> usize {
    (cores() / 2).max(2)
}

/// As many as there are cores.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(AT_ONCE_MAX)
}

impl AnswerPool {
    /// Computes so many answers at a time, when it is started.
    pub fn new(at_once: usize) -> AnswerPool {
        let (shared, threads) = Default::default();
        AnswerPool { at_once: at_once.clamp(1, AT_ONCE_MAX), shared, threads }
    }

    pub fn start(&self) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < self.at_once {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("http-answer".into());
            threads.push(thread.spawn(move || {
                // Of this thread alone; where it is refused, the number of threads still bounds them.
                let _ = rustix::process::setpriority_process(None, STANDS_BACK);
                shared.work();
            })?);
        }
        Ok(())
    }

    /// How many answers are computed at a time.
    #[cfg(test)]
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// Answers that are being computed.
    #[cfg(test)]
    pub fn busy(&self) -> usize {
        self.shared.lock().busy
    }

    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting
    }

    /// Lets a request of a caller wait for a thread; `false` if there is no room for it.
    pub fn submit(&self, caller: CallerId, task: Task) -> bool {
        let is_taken = self.shared.lock().push(caller, task);
        if is_taken {
            self.shared.changed.notify_one();
        }
        is_taken
    }

    /// Takes no further requests, and waits until those that are there are answered; not
    /// longer than the time, after which an answer that does not come is left to itself.
    pub fn end(&self, most: Duration) {
        let mut queue = self.shared.lock();
        queue.is_ended = true;
        self.shared.changed.notify_all();
        let is_at_work = |queue: &mut Queue| queue.busy + queue.waiting > 0;
        let waited = self.shared.changed.wait_timeout_while(queue, most, is_at_work);
        let (queue, late) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(queue);
        if late.timed_out() {
            return;
        }
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
    }
}

impl PoolState {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes one answer after the other until it is over.
    fn work(&self) {
        loop {
            let is_idle = |queue: &mut Queue| queue.waiting == 0 && !queue.is_ended;
            let waited = self.changed.wait_while(self.lock(), is_idle);
            let next = waited.unwrap_or_else(PoisonError::into_inner).pop();
            let Some(task) = next else { return };
            // Whoever waits for it sees that nothing comes; the thread is for the next one.
            let _ = panics::caught(task);
            self.lock().busy -= 1;
            self.changed.notify_all();
        }
    }
}

impl Queue {
    fn push(&mut self, caller: CallerId, task: Task) -> bool {
        if self.is_ended || self.waiting >= WAITING_MAX {
            return false;
        }
        match self.turns.iter_mut().find(|(it, _)| *it == caller) {
            Some((_, own)) if own.len() >= WAITING_OF_CALLER_MAX => return false,
            Some((_, own)) => own.push_back(task),
            None => self.turns.push_back((caller, VecDeque::from([task]))),
        }
        self.waiting += 1;
        true
    }

    /// What the caller asked first whose turn it is, who is behind all others then.
    fn pop(&mut self) -> Option<Task> {
        let (caller, mut own) = self.turns.pop_front()?;
        let task = own.pop_front();
        if !own.is_empty() {
            self.turns.push_back((caller, own));
        }
        self.waiting -= 1;
        self.busy += 1;
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// What was computed, in order, and what holds the first up.
    struct Scene {
        pool: AnswerPool,
        done: Receiver<i64>,
        tell: Sender<i64>,
    }

    impl Scene {
        fn new(at_once: usize) -> Scene {
            let (tell, done) = channel();
            Scene { pool: AnswerPool::new(at_once), done, tell }
        }

        fn submit(&self, caller: CallerId, number: i64) -> bool {
            let tell = self.tell.clone();
            self.pool.submit(caller, Box::new(move || tell.send(number).unwrap()))
        }
    }

    #[test]
    fn no_more_answers_are_computed_at_a_time_than_it_may() {
        let scene = Scene::new(2);
        scene.pool.start().unwrap();
        let (begun, begins) = channel();
        let mut held = Vec::new();
        for _ in 0..3 {
            let (release, released) = channel::<()>();
            let begun = begun.clone();
            let task = move || {
                begun.send(()).unwrap();
                let _ = released.recv();
            };
            assert!(scene.pool.submit(1, Box::new(task)));
            held.push(release);
        }
        begins.recv().unwrap();
        begins.recv().unwrap();
        assert_eq!((scene.pool.busy(), scene.pool.waiting()), (2, 1));
        assert!(begins.try_recv().is_err(), "the third waits");
        drop(held.remove(0));
        begins.recv().unwrap();
        drop(held);
        scene.pool.end(Duration::from_secs(30));
        assert_eq!((scene.pool.busy(), scene.pool.waiting()), (0, 0));
        assert!(!scene.submit(1, 0), "it is over");
    }

    #[test]
    fn callers_have_turns_and_a_share_of_the_queue() {
        let scene = Scene::new(1);
        for number in 0..10 {
            assert!(scene.submit(1, number));
        }
        assert!(scene.submit(2, 20) && scene.submit(2, 21) && scene.submit(3, 30));
        let mut more = 10;
        while scene.submit(1, more) {
            more += 1;
        }
        assert_eq!(more as usize, WAITING_OF_CALLER_MAX, "a caller's share");
        let room = WAITING_MAX - scene.pool.waiting();
        assert!(room > 0 && (0..room).all(|caller| scene.submit(100 + caller as i64, 0)));
        assert!(!scene.submit(4, 40), "there is no more room");
        scene.pool.start().unwrap();
        let first: Vec<i64> = (0..3).map(|_| scene.done.recv().unwrap()).collect();
        assert_eq!(first, [0, 20, 30], "nobody waits for all that another asked");
        scene.pool.end(Duration::from_secs(30));
    }

    #[test]
    fn a_panic_ends_an_answer_and_nothing_else() {
        let scene = Scene::new(1);
        scene.pool.start().unwrap();
        assert!(scene.pool.submit(1, Box::new(|| panic!("on purpose"))));
        assert!(scene.submit(1, 7));
        assert_eq!(scene.done.recv().unwrap(), 7);
        scene.pool.end(Duration::from_secs(30));
        assert_eq!(scene.pool.busy(), 0);
    }
}
