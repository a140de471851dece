//! A job while it runs: its definition and its specification, compiled, and the state of its run.
//!
//! Made anew whenever one of them changes, and shared by all who work on the job.

mod address;
#[cfg(test)]
pub(crate) mod fixture;
mod settings;
mod web;

pub use address::{Address, CrawlEnvironment};
pub use settings::{Delays, JobSettings};
pub use web::{WebJob, names_requisites};

use crate::connectors;
use crate::connectors::web::LINK;
use crate::definitions::{BadSpec, MODEL, WebSpec};
use crate::frontier::{HostKey, Spot};
use crate::hops::HopRules;
use crate::lifecycle::Model;
use crate::repository::Repository;
use crate::targets::Target;
use page::ids::{DocHash, bin_of, part_of};
use std::sync::Arc;
use store::chunkfile::document::DocumentRole;
use store::ids::{BinId, ConnectionId, JobId, Part, QueueId, Run};
use store::tables::documents::Document;
use store::tables::hops::DistanceMessage;
use store::tables::job_states::{self, AttendedJob, JobState, Phase, RemovalRounds, RunKind};
use store::tables::jobs::Job;
use store::tables::outlets::Outlet;
use store::tables::queue::sweep::Sweep;
use store::tables::queue::{self, AddContext, AddResult, Candidate, Entry, Place, ReasonCode};
use store::tables::queue::{REQUISITES, RequisiteRules};
use store::tables::removals::Period;
use store::tables::{counters, events};
use store::{Error, Tx};

/// The run that something is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RunKey {
    pub job: JobId,
    pub run: Run,
}

/// A run of a job, and what it means for older documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobRun {
    pub job: JobId,
    pub run: Run,
    pub kind: RunKind,
}

/// What is done with the documents of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobMode {
    /// They are looked at.
    Crawl,
    /// They are swept out of it.
    Sweep(Sweep),
}

impl JobMode {
    fn of(state: &JobState) -> JobMode {
        match state.phase {
            Phase::ShuttingDown if state.removals.only => {
                JobMode::Sweep(Sweep::Leaving(state.removals.released))
            }
            Phase::ShuttingDown => JobMode::Sweep(Sweep::Clean(state.run)),
            Phase::Deleting => JobMode::Sweep(Sweep::Delete),
            _ => JobMode::Crawl,
        }
    }
}

/// A job at work.
#[allow(missing_docs)]
// tidy: wide a job as it is defined, compiled, and the state of its run
pub struct JobWork {
    pub id: JobId,
    /// As it was defined when this was made.
    pub definition: Job,
    /// Its name, for people.
    pub name: String,
    pub run: Run,
    /// When that run began.
    pub began_ms: i64,
    /// What that run means for older documents.
    pub kind: RunKind,
    /// What is done with its documents.
    pub mode: JobMode,
    /// What is decided about removals that are marked.
    pub removals: RemovalRounds,
    /// Where its documents come from.
    pub connection: ConnectionId,
    /// As that connection was configured when this was made.
    pub config: String,
    pub settings: JobSettings,
    /// What it works on.
    pub source: JobSource,
    /// The authority group that secures its documents.
    pub authority: Option<String>,
    /// Where its documents go, and went.
    pub outlets: Vec<Outlet>,
    /// Whether other jobs read the same connection, and so may have the same documents.
    pub has_siblings: bool,
    /// How far from its seeds it goes, if that is limited.
    pub hops: Option<Arc<HopRules>>,
    /// Whether its documents hand values to those they lead to.
    pub carries: bool,
    /// What all jobs share.
    pub shared: CrawlEnvironment,
}

/// What a job works on.
#[allow(missing_docs)]
pub enum JobSource {
    Web(Box<WebJob>),
    /// What another connector reaches.
    Other(Arc<dyn Repository>),
}

impl JobWork {
    /// What its present run is counted by.
    pub fn run_key(&self) -> RunKey {
        RunKey { job: self.id, run: self.run }
    }

    /// Compiles a job that somebody attends to.
    pub fn new(attended: &AttendedJob, shared: &CrawlEnvironment) -> Result<JobWork, BadSpec> {
        let docspec = &attended.job.docspec;
        let (source, mut settings) = if connectors::is_web(&attended.connector) {
            let web = WebJob::new(attended, shared)?;
            let settings = JobSettings::of_web(&web.spec);
            (JobSource::Web(Box::new(web)), settings)
        } else {
            let (connector, config) = (&attended.connector, &attended.config);
            let repository =
                connectors::repository(connector, config, docspec).map_err(BadSpec::Json)?;
            (JobSource::Other(repository), JobSettings::of_others())
        };
        let carries = match &source {
            JobSource::Web(web) => web.feeds,
            JobSource::Other(repository) => repository.carries(),
        };
        // What an output takes must be there, whatever the job would keep for itself.
        settings.bodies |= attended.outlets.iter().any(|outlet| outlet.bodies);
        Ok(JobWork {
            id: attended.job.id,
            definition: attended.job.clone(),
            name: attended.job.name.clone(),
            run: attended.state.run,
            began_ms: attended.state.start_ms.unwrap_or(0),
            kind: attended.state.run_kind,
            mode: JobMode::of(&attended.state),
            removals: attended.state.removals,
            connection: attended.job.connection,
            config: attended.config.clone(),
            settings,
            source,
            authority: attended.authority.clone(),
            outlets: attended.outlets.clone(),
            has_siblings: attended.has_siblings,
            hops: hop_rules(attended).map(Arc::new),
            carries,
            shared: shared.clone(),
        })
    }

    /// Ends what its repository is at, because it stops.
    pub fn interrupt(&self) {
        if let JobSource::Other(repository) = &self.source {
            repository.interrupt();
        }
    }

    /// The web that it works on, if it does.
    pub fn web(&self) -> Option<&WebJob> {
        match &self.source {
            JobSource::Web(web) => Some(web),
            JobSource::Other(_) => None,
        }
    }

    /// What its connector can tell of changes.
    pub fn model(&self) -> Model {
        match &self.source {
            JobSource::Web(_) => MODEL,
            JobSource::Other(repository) => repository.model(),
        }
    }

    /// Where a document lives.
    pub fn address<'a>(&self, docid: &'a str) -> Address<'a> {
        match &self.source {
            JobSource::Web(_) => self.shared.address(docid),
            JobSource::Other(repository) => {
                let host = repository.bin(docid);
                let group = Some(repository.group(docid));
                let part = Part(part_of(group, docid, self.shared.parts).into());
                Address { part, bin: BinId(bin_of(host)), host }
            }
        }
    }

    /// Whether outputs do not hear of a document so far from its seeds: it only leads to
    /// others.
    pub fn only_leads(&self, hops: i64) -> bool {
        hops == 0 && self.web().is_some_and(|web| web.feeds)
    }

    /// Where outputs keep a document.
    pub fn uri(&self, docid: &str) -> String {
        match &self.source {
            JobSource::Web(_) => docid.to_owned(),
            JobSource::Other(repository) => repository.uri(docid),
        }
    }

    /// Whether a job is defined as it was when this was made.
    pub fn is_defined_as(&self, attended: &AttendedJob) -> bool {
        self.definition == attended.job
            && self.removals == attended.state.removals
            && self.config == attended.config
            && self.outlets == attended.outlets
            && self.has_siblings == attended.has_siblings
            && self.authority == attended.authority
            && self.hops.as_deref() == hop_rules(attended).as_ref()
    }

    /// Whether a document has lived long enough, as far as the job still says so: the end
    /// that an earlier run had in mind for it is not this one's.
    pub fn ends(&self, entry: &Entry) -> bool {
        let definition = &self.definition;
        entry.action == queue::Action::Expire
            && entry.done_run == Some(self.run)
            && definition.continuous
            && definition.expiration_ms.is_some()
    }

    /// Its current run, and what that means for older documents.
    pub fn in_run(&self) -> JobRun {
        JobRun { job: self.id, run: self.run, kind: self.kind }
    }

    /// The removals that a continuous job carries out while it goes on; others wait for the end of
    /// the run, in which the document may be found again.
    pub fn released_removals(&self) -> Option<Sweep> {
        let released = self.removals.released;
        let loses = self.definition.continuous && released > 0;
        loses.then_some(Sweep::Leaving(released))
    }

    /// Over which of its losses it is judged.
    pub fn removal_period(&self, now_ms: i64) -> Period {
        match self.definition.continuous {
            true => Period::DayBefore(now_ms),
            false => Period::Run(self.run),
        }
    }

    /// Whether a document was a seed of an older run, and this one has named all of its own.
    pub fn is_no_seed_any_more(&self, entry: &Entry) -> bool {
        let names_all = self.kind == RunKind::Full || self.model() == Model::All;
        names_all && entry.seed_run.is_some_and(|seed_run| seed_run < self.run)
    }

    /// Whether this is what is to be done for a job.
    pub fn is(&self, attended: &AttendedJob) -> bool {
        let state = &attended.state;
        let is_it = self.id == attended.job.id && self.connection == attended.job.connection;
        is_it && self.run == state.run && self.mode == JobMode::of(state)
    }

    /// The event that documents wait for while somebody logs in for them, if they need that.
    pub fn login_event(&self, docid: &str) -> Option<String> {
        let login = self.web().and_then(|web| web.login_for(docid));
        login.map(|_| events::EventScope::Connection(self.connection).event("login"))
    }

    /// The job at a host.
    pub fn spot(&self, host: HostKey) -> Spot {
        Spot { host, job: self.id, connection: self.connection }
    }

    /// The job in a part.
    pub fn place(&self, part: Part) -> Place {
        Place { part, job: self.id }
    }

    /// Adds candidates to one part of the queue, within the job's limits; its documents
    /// are told how far they are.
    pub fn add(
        &self,
        tx: &mut Tx<'_>,
        part: Part,
        now_ms: i64,
        candidates: &[Candidate],
        messages: &[DistanceMessage],
    ) -> Result<AddResult, Error> {
        let adding = self.adding(tx, part, now_ms)?;
        let Some(rules) = &self.hops else { return queue::add(tx, adding, candidates) };
        let mut candidates = candidates.to_vec();
        let woken = rules.receive(tx, adding, messages, &mut candidates)?;
        // What was let in just now has taken its room.
        let adding = if woken.is_empty() { adding } else { self.adding(tx, part, now_ms)? };
        let mut added = queue::add(tx, adding, &candidates)?;
        added.woken.extend(woken);
        Ok(added)
    }

    /// Where documents are added, and how many may be let in.
    pub fn adding(&self, tx: &mut Tx<'_>, part: Part, now_ms: i64) -> Result<AddContext, Error> {
        let room = match self.settings.pages_max {
            Some(most) => {
                job_states::lock(tx, self.id)?;
                Some(most - counters::pages_let_in(tx, self.id)?)
            }
            None => None,
        };
        let requisites = self.requisite_rules(tx)?;
        Ok(AddContext { place: self.place(part), run: self.run, now_ms, room, requisites })
    }

    fn requisite_rules(&self, tx: &mut Tx<'_>) -> Result<RequisiteRules, Error> {
        let Some(web) = self.web().filter(|web| web.requisites) else {
            return Ok(RequisiteRules::default());
        };
        job_states::lock(tx, self.id)?;
        let room = web.spec.requisites_max - counters::total(tx, self.id, REQUISITES)?;
        // Other runs do not name all pages that there are.
        let unlinks = self.kind == RunKind::Full && self.run.0 > 1;
        Ok(RequisiteRules { room: Some(room), unlinks })
    }

    /// What outputs have a document as after a look at it: another job may have it as a page.
    pub fn role_after(&self, entry: &Entry, known: &Document) -> DocumentRole {
        let is_live = crate::compare::is_live(known);
        let is_page_of_others = self.has_siblings && is_live && !known.role.is_requisite();
        DocumentRole::of_requisite(entry.role.is_requisite() && !is_page_of_others)
    }

    /// A candidate for the queue, for a URL at a distance.
    pub fn candidate(&self, id: QueueId, url: String, found: LinkOrigin) -> (Part, Candidate) {
        let events = self.login_event(&url).into_iter().collect();
        let address = self.address(&url);
        let (part, bin, bin_name) = (address.part, address.bin, address.host.to_owned());
        let candidate = Candidate {
            id,
            dochash: DocHash::of(&url),
            docid: url,
            bin,
            bin_name,
            // Those of a bin are taken in the order in which they arrive, and lists beside them.
            priority: f64::from(found.list_depth),
            hops: found.hops,
            redirects: found.redirects,
            seed: found.seed,
            parent: found.parent,
            cut: found.cut,
            events,
            role: found.role,
            levels: found.levels,
        };
        (part, candidate)
    }
}

/// How far a job goes; of one that is deleted nothing is counted any more.
fn hop_rules(attended: &AttendedJob) -> Option<HopRules> {
    let is_counted = JobMode::of(&attended.state) != JobMode::Sweep(Sweep::Delete);
    let mut filters = attended.hops.clone();
    if connectors::is_web(&attended.connector)
        && let Ok(spec) = WebSpec::from_json(&attended.job.docspec)
    {
        spec.limit_hops(&mut filters);
    }
    HopRules::new(&filters, attended.job.hopcount).filter(|_| is_counted)
}

/// How a URL was found.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct LinkOrigin {
    /// Links from the nearest seed.
    pub hops: i64,
    /// Redirects in a row that led here.
    pub redirects: i64,
    /// Whether a seed list names it.
    pub seed: bool,
    pub parent: Option<(Part, DocHash)>,
    /// By which of the connector's kinds of links.
    pub link: &'static str,
    /// Why it is known but not to be fetched.
    pub cut: Option<ReasonCode>,
    /// Lists that lead to it, if it is a list that an index or a robots.txt names.
    pub list_depth: u8,
    /// As what it is named.
    pub role: DocumentRole,
    /// Requisites in a row that lead to it, if it is one.
    pub levels: i64,
}

impl LinkOrigin {
    /// What a document that names a target says of it.
    pub fn of(target: &Target) -> LinkOrigin {
        let Target { cut, list_depth, role, levels, .. } = *target;
        LinkOrigin { link: LINK, cut, list_depth, role, levels, ..LinkOrigin::default() }
    }
}
