//! A database with one job, a web site on loopback, and a worker for them.

use crate::begin;
use crate::conduct::{self, Attends, NoObserver};
use crate::connectors::{files, sql, web};
use crate::definitions::WebSpec;
use crate::lifecycle::JobEvent;
use crate::worker::progress::{Progress, ProgressCounts};
use crate::worker::{CrawlEnd, Stopper, Worker, WorkerDeps, WorkerSettings};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::ids::{ConnectionId, IdMaker, JobId};
use store::objects::{Location, Objects};
use store::panics::Faults;
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::job_states::{self, JobState};
use store::tables::jobs::{self, Job};
use store::tables::nodes::{self, NewNode};
use store::tables::{registrations, settings};
use store::{Db, Result, clock};

pub const JOB: JobId = JobId(1);
/// What a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(50);

/// A web site on loopback: each connection has one request, which `answer` answers.
pub struct Site {
    pub port: u16,
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// `answer` is given a path and says the status and the body; for a redirect, its target.
    pub fn start(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        // Ends with the test's process: nobody waits for it.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        Site { port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|it| *it == path).count()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> (u16, String)) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
    seen.lock().unwrap().push(path.clone());
    let (status, body) = answer(&path);
    let location =
        if (300..400).contains(&status) { format!("location: {body}\r\n") } else { String::new() };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
         {location}connection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

/// A home page that links to so many others, and those.
pub fn pages(count: usize) -> impl Fn(&str) -> (u16, String) + Send + Sync + 'static {
    move |path| match path {
        "/robots.txt" => (404, String::new()),
        "/" => {
            let link = |number| format!("<a href=/p{number}>page {number}</a>");
            (200, format!("<title>home</title>{}", (0..count).map(link).collect::<String>()))
        }
        path => (200, format!("<title>{path}</title><p>This is the text of {path}.")),
    }
}

/// A database with a job.
pub struct World {
    pub db: Db,
    pub objects: Objects,
    pub faults: Faults,
    _folder: tempfile::TempDir,
}

impl World {
    /// A web job that begins at a URL.
    pub fn web(db: &Db, seed: &str, change: impl FnOnce(&mut WebSpec)) -> Result<World> {
        let mut spec = WebSpec {
            seeds: vec![seed.to_owned()],
            delay_ms: 0,
            allow_private: true,
            ..WebSpec::default()
        };
        change(&mut spec);
        World::new(db, &web::CONNECTOR, spec.to_json())
    }

    /// A job over a directory.
    pub fn files(db: &Db, root: &Path) -> Result<World> {
        let docspec = serde_json::json!({"roots": [root]}).to_string();
        let docspec = (files::CONNECTOR.check_spec)(&docspec).unwrap();
        World::new(db, &files::CONNECTOR, docspec)
    }

    /// A job over a database of somebody else's.
    pub fn sql(db: &Db, database: &str, (ids, document): (&str, &str)) -> Result<World> {
        let config = serde_json::json!({"database": database}).to_string();
        let config = (sql::CONNECTOR.check_config)(&config).unwrap();
        let docspec = serde_json::json!({"ids": ids, "document": document}).to_string();
        let docspec = (sql::CONNECTOR.check_spec)(&docspec).unwrap();
        let world = World::new(db, &sql::CONNECTOR, docspec)?;
        db.write(move |tx| {
            let connection = Connection::new(ConnectionId(1), "source", sql::CONNECTOR.name);
            let connection = Connection { config: config.clone(), ..connection };
            connections::save(tx, ConnectionKind::Repository, &connection, 0).map(|_| ())
        })?;
        Ok(world)
    }

    fn new(db: &Db, connector: &'static store::catalog::Connector, spec: String) -> Result<World> {
        db.write(move |tx| {
            settings::freeze(tx, 4)?;
            registrations::register(tx, connector, 0)?;
            let connection = Connection::new(ConnectionId(1), "source", connector.name);
            connections::save(tx, ConnectionKind::Repository, &connection, 0)?;
            let job = Job { docspec: spec.clone(), ..Job::new(JOB, "job", ConnectionId(1)) };
            jobs::save(tx, &job, 0).map(|_| ())
        })?;
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::open(&Location::Directory(folder.path().to_owned()))?;
        Ok(World { db: db.clone(), objects, faults: Faults::default(), _folder: folder })
    }

    pub fn tell(&self, event: JobEvent) -> Result<JobState> {
        self.db.write(move |tx| conduct::change(tx, JOB, &event, clock::now_ms()))
    }

    pub fn state(&self) -> Result<JobState> {
        self.db.read(|tx| job_states::state(tx, JOB))
    }

    /// A worker at work until no job has anything to do.
    pub fn work(&self) -> Result<Working> {
        self.work_until(true)
    }

    /// A worker at work until it is idle, or until it is told to stop.
    pub fn work_until(&self, idle: bool) -> Result<Working> {
        let (name, roles) = ("one".to_owned(), "crawl".to_owned());
        let node = NewNode { name, roles, address: None, version: "0".into() };
        let node = self.db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let progress = Arc::new(Progress::default());
        let mut shared = begin::shared(&self.db, Vec::new())?;
        shared.faults = self.faults.clone();
        let deps = WorkerDeps {
            db: self.db.clone(),
            objects: self.objects.clone(),
            ids: Arc::new(IdMaker::new(node)?),
            shared,
            progress: progress.clone(),
            observer: Arc::new(NoObserver),
        };
        let mut settings = WorkerSettings::new("one", 8).with_lease(1_000);
        settings.until_idle = idle;
        let usual = WebSpec::default();
        (settings.fetch.agent, settings.fetch.contact) = (usual.agent, usual.contact);
        let (worker, stopper) = Worker::start(deps, settings, Attends::All)?;
        let thread = std::thread::spawn(move || worker.run());
        Ok(Working { progress, stopper, thread })
    }

    /// Starts the job and works until it is done. What was counted.
    pub fn run(&self) -> Result<ProgressCounts> {
        self.tell(JobEvent::Start { minimal: false })?;
        let working = self.work()?;
        let progress = working.progress.clone();
        working.join()?;
        let state = self.state()?;
        assert_eq!((state.name().as_str(), state.error), ("INACTIVE", None));
        Ok(progress.snapshot())
    }

    /// The first columns of rows, as texts.
    pub fn texts(&self, sql: &'static str) -> Result<Vec<String>> {
        self.db.read(move |tx| tx.query(sql, &[], |row| row.get(0)))
    }

    /// The titles of all documents that are there.
    pub fn titles(&self) -> Result<Vec<String>> {
        self.texts("SELECT title FROM documents WHERE removed_ms IS NULL AND title IS NOT NULL ORDER BY title")
    }
}

/// A worker at work.
pub struct Working {
    pub progress: Arc<Progress>,
    pub stopper: Stopper,
    thread: JoinHandle<Result<CrawlEnd>>,
}

impl Working {
    /// Waits for its end, which comes.
    #[track_caller]
    pub fn join(self) -> Result<CrawlEnd> {
        let Working { stopper, thread, progress } = self;
        let began = Instant::now();
        while !thread.is_finished() {
            if began.elapsed() > PATIENCE {
                stopper.stop();
                panic!("the worker does not end; it waits for {:?}", progress.snapshot().waits);
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        thread.join().expect("a worker does not panic")
    }
}

/// Looks again and again until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
