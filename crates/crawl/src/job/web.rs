//! A job over the web, compiled: its scope, its guard, its credentials.

use super::CrawlEnvironment;
use crate::budget::NO_LIMIT;
use crate::connectors::{feed, web};
use crate::definitions::{BadSpec, WebSpec};
use crate::fetch::{AddressPace, Guard, HeaderValue, user_agent};
use crate::login::{Basic, Login};
use crate::scope::Scope;
use page::ids::bin_of;
use page::url::host_of;
use std::collections::HashSet;
use store::ids::BinId;
use store::tables::job_states::AttendedJob;

/// A web job, compiled.
pub struct WebJob {
    /// What it is told.
    pub spec: WebSpec,
    /// What belongs to it.
    pub scope: Scope,
    /// What it may reach.
    pub guard: Guard,
    /// How much it asks one address for; `None` for a job without delays, which is for sites of
    /// one's own.
    pub address_pace: Option<AddressPace>,
    /// Who it says it is.
    pub user_agent: HeaderValue,
    /// Whether its seeds are feeds, and what these announce leads nowhere.
    pub feeds: bool,
    /// Whether what its pages need is fetched, beyond its scope.
    pub requisites: bool,
    /// Credentials for some of its sites.
    pub basic: Option<Basic>,
    /// How it logs in.
    login: Option<Login>,
    /// The hosts of its seeds.
    seed_hosts: HashSet<BinId>,
}

/// Ends the rules by which a document was read whose facts name what it needs.
const WITH_REQUISITES: &str = "+requisites";

/// Rules without, and whether they end with [`WITH_REQUISITES`].
fn parted(rules: Option<&str>) -> (&str, bool) {
    let rules = rules.unwrap_or_default();
    rules.strip_suffix(WITH_REQUISITES).map_or((rules, false), |rules| (rules, true))
}

/// Whether the facts of a document name what it needs, by the rules that it was read by.
pub fn names_requisites(version: Option<&str>) -> bool {
    // What it was handed stands behind them.
    let version = version.map(|it| it.rsplit_once('\n').map_or(it, |parts| parts.0));
    parted(version).1
}

impl WebJob {
    pub(super) fn new(
        attended: &AttendedJob,
        shared: &CrawlEnvironment,
    ) -> Result<WebJob, BadSpec> {
        let (connector, docspec) = (&attended.connector, &attended.job.docspec);
        let config = web::config(&attended.config).map_err(BadSpec::Json)?;
        let feeds = connector == feed::NAME;
        let spec = WebSpec::from_json(docspec)?;
        config.check_job(&spec).map_err(BadSpec::Forbidden)?;
        let spec = if feeds { feed::spec(spec) } else { spec };
        let scope = spec.compile(shared.suffixes.clone())?;
        let user_agent =
            user_agent(&spec.agent, &spec.contact).map_err(|_| BadSpec::Agent("--user-agent"))?;
        let guard = Guard {
            allow_private: spec.allow_private,
            own: shared.own.clone(),
            ..Guard::default()
        };
        let basic = Basic::new(&config.basic).map_err(BadSpec::Json)?;
        let login = Login::new(&config.login).map_err(BadSpec::Json)?;
        let seed_hosts = spec.seeds.iter().map(|url| BinId(bin_of(host_of(url)))).collect();
        let address_pace = spec.address_pace();
        let is_asked = attended.outlets.iter().any(|it| it.requisites && !it.former);
        let requisites = spec.requisites.is_wanted(is_asked);
        Ok(WebJob {
            spec,
            scope,
            guard,
            address_pace,
            user_agent,
            feeds,
            requisites,
            basic,
            login,
            seed_hosts,
        })
    }

    /// Pages that a host may have before pages of other hosts link to it.
    pub fn host_pages(&self, host: BinId) -> i64 {
        match self.spec.host_pages {
            0 => NO_LIMIT,
            _ if self.seed_hosts.contains(&host) => NO_LIMIT,
            most => most,
        }
    }

    /// By what its documents are read, if there is anything to say: what they have passed, and
    /// that their facts name what they need.
    pub fn reading_rules(&self) -> Option<String> {
        let rules = self.scope.content_rules().unwrap_or_default();
        let says = if self.requisites { WITH_REQUISITES } else { "" };
        Some(format!("{rules}{says}")).filter(|rules| !rules.is_empty())
    }

    /// Whether a document that was read by some rules says what it would say now.
    pub fn was_read_alike(&self, rules: Option<&str>) -> bool {
        let (rules, names_requisites) = parted(rules);
        rules == self.scope.content_rules().unwrap_or_default()
            && (names_requisites || !self.requisites)
    }

    /// The login that a document needs, if it needs one.
    pub fn login_for(&self, url: &str) -> Option<&Login> {
        self.login.as_ref().filter(|login| login.guards(url))
    }
}
