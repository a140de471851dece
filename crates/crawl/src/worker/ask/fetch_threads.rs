//! The threads that fetch and read: each with its own runtime and its own fetcher.
//!
//! A task goes in, an event comes out; what is under way is bounded by whoever sends
//! tasks, so nothing here has to be. Reading a page happens on the thread that fetched
//! it, between two polls of the network: a page takes less than a millisecond.
//!
//! Invariant: every task that was sent is answered by exactly one event, also when it
//! panics, unless the threads are told to end.

use crate::carrydown::opened;
use crate::definitions::RobotsFor;
use crate::extract::{self, ExtractNotes};
use crate::fetch::{
    self, AddressRequest, FetchRequest, Fetcher, FollowedChain, HopVerdict, Outcome,
};
use crate::fetch::{HeaderName, HeaderValue};
use crate::job::{JobSource, WebJob};
use crate::login::sequence::{LoginContext, LoginOutcome};
use crate::repository::{KnownVersion, LookResult, Read, Repository};
use crate::worker::ask::tasks::{DocumentDone, DocumentTask, FetchReport, LoginDone, LoginTask};
use crate::worker::ask::tasks::{LookedDone, RobotsDone, RobotsTask, Task};
use crate::worker::leases::check::LeaseCheck;
use crate::worker::read;
use crate::worker::read::ParsedDocument;
use page::sniff;
use page::url::Policy;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use store::panics::{FaultPoint, caught, caught_async};
use store::tables::queue::ReasonCode;
use store::{Error, Result};
use store::{clock, open_files};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub struct FetchThreads {
    tasks: Vec<mpsc::Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
    turn: usize,
}

impl FetchThreads {
    /// Starts threads that can have `capacity` tasks each, and report through `report`.
    pub fn start(
        settings: &fetch::FetcherSettings,
        threads: usize,
        capacity: usize,
        lease_check: LeaseCheck,
        report: impl Fn(FetchReport) -> bool + Clone + Send + 'static,
    ) -> Result<FetchThreads> {
        let mut started = FetchThreads { tasks: Vec::new(), threads: Vec::new(), turn: 0 };
        // The limit is one of the process, whose threads share it.
        let mut settings = settings.clone();
        let wanted = open_files::connections(settings.limits.connections_max);
        settings.limits.connections_max = (wanted / threads.max(1)).max(1);
        for number in 0..threads.max(1) {
            let fetcher = Fetcher::new(settings.clone())
                .map_err(|unusable| Error::Refused(unusable.to_string()))?;
            let (sender, receiver) = mpsc::channel(capacity.max(1));
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Error::io("fetching", error))?;
            let serve = serve(Arc::new(fetcher), receiver, lease_check.clone(), report.clone());
            let thread = std::thread::Builder::new()
                .name(format!("fetch-{number}"))
                .spawn(move || runtime.block_on(serve))
                .map_err(|error| Error::io("fetching", error))?;
            started.tasks.push(sender);
            started.threads.push(thread);
        }
        Ok(started)
    }

    /// Hands a task to the next thread. The caller keeps within the capacity.
    pub fn send(&mut self, task: Task) {
        self.turn = (self.turn + 1) % self.tasks.len();
        let sent = self.tasks[self.turn].try_send(task);
        assert!(sent.is_ok(), "no more tasks are sent than may be under way");
    }

    /// Ends the threads; what is under way is dropped.
    pub fn stop(mut self) {
        self.tasks.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

async fn serve(
    fetcher: Arc<Fetcher>,
    mut tasks: mpsc::Receiver<Task>,
    lease_check: LeaseCheck,
    report: impl Fn(FetchReport) -> bool + Clone + Send + 'static,
) {
    // Owned here, so that what is under way ends with the thread.
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            task = tasks.recv() => match task {
                Some(task) => {
                    let (fetcher, report) = (fetcher.clone(), report.clone());
                    let lease_check = lease_check.clone();
                    under_way.spawn(async move {
                        let done = match lease_check.is_held(task.lease(), clock::now_ms()) {
                            true => work(&fetcher, task).await,
                            false => FetchReport::NotAsked(task),
                        };
                        report(done);
                    });
                }
                None => return,
            },
            // What panics is a value by now: a task ends only when it has reported.
            Some(_) = under_way.join_next() => {}
        }
    }
}

async fn work(fetcher: &Fetcher, task: Task) -> FetchReport {
    match task {
        Task::Robots(task) => fetch_robots(fetcher, task).await,
        Task::Login(task) => log_in(fetcher, task).await,
        Task::Document(task) => {
            let job = task.job.clone();
            match &job.source {
                JobSource::Web(web) => fetch_document(fetcher, task, web).await,
                JobSource::Other(repository) => look_at(repository.clone(), task).await,
            }
        }
    }
}

async fn fetch_robots(fetcher: &Fetcher, task: RobotsTask) -> FetchReport {
    let Some(web) = task.job.web() else { return FetchReport::NotAsked(Task::Robots(task)) };
    let began_ms = clock::now_ms();
    let url = format!("{}/robots.txt", task.origin);
    let mut ask = FetchRequest::new(&url, &web.guard);
    let begun = match begin(fetcher, &ask, web).await {
        Ok(begun) => begun,
        Err(until_ms) => return FetchReport::NotYet(Task::Robots(task), until_ms),
    };
    ask.user_agent = Some(&web.user_agent);
    ask.body_bytes_max = Some(page::robots::BODY_BYTES_MAX + 1);
    ask.bandwidth = task.bandwidth.as_deref();
    let most = page::robots::answer::REDIRECTS_MAX;
    let asking = async {
        task.job.shared.faults.at(FaultPoint::AskRobots, &task.origin);
        fetcher.follow(&ask, most, |_| HopVerdict::Follow).await
    };
    // As a server that cannot be reached: nothing of the origin is asked for meanwhile.
    let unknown =
        |_| FollowedChain { url: url.clone(), hops: Vec::new(), outcome: internal_trouble() };
    let followed = caught_async(asking).await.unwrap_or_else(unknown);
    drop(begun);
    let ended_ms = clock::now_ms();
    FetchReport::Robots(Box::new(RobotsDone { task, followed, began_ms, ended_ms }))
}

fn internal_trouble() -> Outcome {
    Outcome::Retry { after_ms: None, reason: fetch::Reason::Internal }
}

/// What came of asking for a document of the web.
struct FetchResult {
    outcome: Outcome,
    reading: Option<ParsedDocument>,
    asks_login: bool,
    ended_ms: i64,
}

/// Begins a request at its address, if the job has addresses spared; the error is when it may be
/// tried again.
async fn begin(
    fetcher: &Fetcher,
    ask: &FetchRequest<'_>,
    web: &WebJob,
) -> std::result::Result<Option<AddressRequest>, i64> {
    match web.address_pace {
        Some(pace) => fetcher.begin_at_address(ask, pace, clock::now_ms()).await,
        None => Ok(None),
    }
}

async fn fetch_document(fetcher: &Fetcher, task: Box<DocumentTask>, web: &WebJob) -> FetchReport {
    let ask = FetchRequest::new(&task.claimed.entry.docid, &web.guard);
    let begun = match begin(fetcher, &ask, web).await {
        Ok(begun) => begun,
        Err(until_ms) => return FetchReport::NotYet(Task::Document(task), until_ms),
    };
    let began_ms = clock::now_ms();
    let (answer, internal) = match caught_async(ask_and_read(fetcher, &task, web)).await {
        Ok(answer) => (answer, None),
        Err(error) => {
            let outcome = Outcome::Failed { reason: fetch::Reason::Internal };
            let (reading, asks_login, ended_ms) = (None, false, clock::now_ms());
            (FetchResult { outcome, reading, asks_login, ended_ms }, Some(error.to_string()))
        }
    };
    drop(begun);
    let FetchResult { outcome, reading, asks_login, ended_ms } = answer;
    let done = DocumentDone { task, outcome, reading, asks_login, internal, began_ms, ended_ms };
    FetchReport::Document(Box::new(done))
}

async fn ask_and_read(fetcher: &Fetcher, task: &DocumentTask, web: &WebJob) -> FetchResult {
    let mut outcome = ask_for(fetcher, task, web).await;
    let ended_ms = clock::now_ms();
    let asks_login = web
        .login_for(&task.claimed.entry.docid)
        .is_some_and(|login| login.asks(&task.claimed.entry.docid, &outcome));
    let reading = match &mut outcome {
        Outcome::Body(body) if !asks_login => {
            task.job.shared.faults.at(FaultPoint::ReadPage, &task.claimed.entry.docid);
            let extractor = &task.job.shared.extractor;
            let media = read::media_of(body);
            let extracted = extractor.ask(&media, &body.body, body.truncated).await;
            let reading = read::read(web, &task.claimed.entry, body, extracted);
            if !task.job.settings.bodies {
                // Nobody will store the bytes, so nobody needs to hold them.
                body.body.clear();
            }
            Some(reading)
        }
        _ => None,
    };
    FetchResult { outcome, reading, asks_login, ended_ms }
}

async fn log_in(fetcher: &Fetcher, task: Box<LoginTask>) -> FetchReport {
    let job = task.job.clone();
    let web = job.web();
    let Some((web, login)) = web.and_then(|web| Some((web, web.login_for(&task.document)?))) else {
        return FetchReport::NotAsked(Task::Login(task));
    };
    let walk = LoginContext {
        fetcher,
        guard: &web.guard,
        user_agent: &web.user_agent,
        suffixes: &job.shared.suffixes,
        delay: Duration::from_millis(u64::try_from(job.settings.delay_ms).unwrap_or(0)),
        robots: (web.spec.robots == RobotsFor::All).then(|| web.spec.product()),
    };
    let began_ms = clock::now_ms();
    let walked = caught_async(login.walk(&walk, &task.document, task.number)).await;
    let failed =
        |error: Error| LoginOutcome { outcome: Err(format!("({error})")), requests: Vec::new() };
    let walked = walked.unwrap_or_else(failed);
    let ended_ms = clock::now_ms();
    FetchReport::Login(Box::new(LoginDone { task, walked, began_ms, ended_ms }))
}

/// Looks at a document that is not on the web, where it disturbs no request.
async fn look_at(repository: Arc<dyn Repository>, task: Box<DocumentTask>) -> FetchReport {
    let began_ms = clock::now_ms();
    let docid = task.claimed.entry.docid.clone();
    let known = task.claimed.known.as_deref();
    let known = known.filter(|it| task.may_be_same(it));
    let data = task.claimed.data.clone();
    let version = known.and_then(|it| opened(it.version.as_deref(), &data)).flatten();
    let version = version.map(str::to_owned);
    let faults = task.job.shared.faults.clone();
    let asked = repository.clone();
    let look = move || {
        caught(|| {
            faults.at(FaultPoint::LookAtDocument, &docid);
            asked.look(&docid, KnownVersion { version: version.as_deref(), data: &data })
        })
    };
    let looked = tokio::task::spawn_blocking(look).await.map_err(|error| error.to_string());
    let looked = looked.and_then(|looked| looked.map_err(|error| error.to_string()));
    let mut looked = looked.unwrap_or_else(internal_error);
    if repository.is_interrupted() && matches!(looked, LookResult::Trouble { passes: true, .. }) {
        return FetchReport::NotAsked(Task::Document(task));
    }
    let mut notes = ExtractNotes::default();
    if let LookResult::Read(read) = &mut looked {
        match caught_async(extract_content(&task, read)).await {
            Ok(extracted) => notes = extracted,
            Err(error) => looked = internal_error(error.to_string()),
        }
    }
    let ended_ms = clock::now_ms();
    FetchReport::Looked(Box::new(LookedDone { task, looked, notes, began_ms, ended_ms }))
}

/// A document on which this program fails.
fn internal_error(detail: String) -> LookResult {
    LookResult::Trouble { code: ReasonCode::InternalError.name(), detail, passes: false }
}

/// Has a document read that its connector cannot read, whichever it is.
async fn extract_content(task: &DocumentTask, read: &mut Read) -> ExtractNotes {
    if read.body.is_empty() {
        // Only its name is known: it is too long for the job, or an extract of a page.
        return ExtractNotes::default();
    }
    let media = sniff::media_of(Some(&read.facts.media_type), true, &read.body);
    let extracted = task.job.shared.extractor.ask(&media, &read.body, false).await;
    let docid = &task.claimed.entry.docid;
    extract::take(extracted, &mut read.facts, docid, &Policy::default())
}

async fn ask_for(fetcher: &Fetcher, task: &DocumentTask, web: &WebJob) -> Outcome {
    let url = &task.claimed.entry.docid;
    let headers = identity(task, web);
    let mut ask = FetchRequest::new(url, &web.guard);
    ask.user_agent = Some(&web.user_agent);
    ask.headers = &headers;
    if !task.claimed.entry.looked_at_as().is_requisite() {
        ask.media_types = &web.spec.scope.media_types;
    }
    ask.bandwidth = task.bandwidth.as_deref();
    // "Nothing new" is an answer only for what outputs have, and when this job has read
    // the document's links before and does not want to read them again.
    let known = task.claimed.known.as_deref();
    let known = known.filter(|it| task.may_be_same(it));
    if let Some(known) = known {
        ask.etag = known.etag.as_deref();
        ask.last_modified = known.last_modified.as_deref();
    }
    let outcome = fetcher.get(&ask).await;
    if let Some(session) = &task.session {
        let suffixes = &task.job.shared.suffixes;
        match &outcome {
            Outcome::Redirect(redirect) => session.take(url, redirect.cookies.iter(), suffixes),
            Outcome::Body(body) => {
                session.take(url, body.headers.get_all("set-cookie").iter(), suffixes);
            }
            _ => {}
        }
    }
    outcome
}

/// By what a site knows who asks, if it wants to know.
fn identity(task: &DocumentTask, web: &WebJob) -> Vec<(HeaderName, HeaderValue)> {
    let url = &task.claimed.entry.docid;
    let basic = web.basic.as_ref().and_then(|basic| basic.header(url)).cloned();
    let cookie = task.session.as_ref().and_then(|session| session.header(url));
    [("authorization", basic), ("cookie", cookie)]
        .into_iter()
        .filter_map(|(name, value)| Some((HeaderName::from_static(name), value?)))
        .collect()
}
