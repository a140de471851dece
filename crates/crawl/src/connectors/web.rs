//! The web connector: what it says of itself, and its own tables.
//!
//! A job's specification is [`WebSpec`]; the connection says who it is to sites that want
//! to know ([`crate::login`]). The work is done by the [`crate::worker`].

use super::{read, written};
use crate::definitions::{CONCURRENCY_MAX, CONNECTOR as NAME, RobotsFor, WebSpec};
use crate::login::{Basic, BasicConfig, Login, LoginConfig};
use page::outlinks;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, Searchable, SettingKind};
use store::owned;
use store::tables::connections::ConnectionKind;

/// A web connection's configuration: who it is to the sites it visits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// A name and a password that go with requests.
    pub basic: BasicConfig,
    /// How it logs in.
    pub login: LoginConfig,
    /// What its jobs may not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<ForbiddenFeatures>,
}

/// What a connection can forbid its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForbiddenFeatures {
    /// To reach addresses that are not on the public internet.
    AllowPrivate,
    /// To leave robots.txt, or what pages say to robots, out of account.
    IgnoreRobots,
}

impl WebConfig {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(mut self) -> Result<WebConfig, String> {
        Basic::new(&self.basic)?;
        Login::new(&self.login)?;
        self.forbid.sort();
        self.forbid.dedup();
        Ok(self)
    }

    /// Refuses a job that does what the connection forbids.
    pub fn check_job(&self, spec: &WebSpec) -> Result<(), String> {
        let ignores_robots = spec.robots == RobotsFor::None || !spec.meta_robots;
        for (forbidden, does, sentence) in [
            (
                ForbiddenFeatures::AllowPrivate,
                spec.allow_private,
                "allow_private: the connection forbids its jobs to reach private addresses",
            ),
            (
                ForbiddenFeatures::IgnoreRobots,
                ignores_robots,
                "robots, meta_robots: the connection forbids its jobs to ignore robots.txt and \
                 what pages say to robots",
            ),
        ] {
            if does && self.forbid.contains(&forbidden) {
                return Err(format!("{sentence}; an administrator can change its setting forbid"));
            }
        }
        Ok(())
    }
}

/// The configuration of a connection that is nobody to anybody, as it is stored.
pub fn no_config() -> String {
    serde_json::to_string(&WebConfig::default()).expect("it has no map with odd keys")
}

/// Reads a connection's configuration.
pub fn config(text: &str) -> Result<WebConfig, String> {
    read::<WebConfig>(text)
}

/// A link from a page.
pub const LINK: &str = "link";
/// An answer that points elsewhere.
pub const REDIRECT: &str = "redirect";

/// What the program knows of this connector.
pub const CONNECTOR: Connector = Connector {
    kind: ConnectionKind::Repository,
    name: NAME,
    about: "web pages and files, found by following links from seeds",
    settings: SETTINGS,
    not_destination: &["forbid"],
    spec: SPEC,
    link_types: &[LINK, REDIRECT],
    takes_bodies: false,
    takes_requisites: false,
    check_config: |text| written(&config(text)?.check()?),
    check_spec,
    check_job: Some(|text, docspec| config(text)?.check_job(&read(docspec)?)),
    install: Some(|tx| owned::WEB.install(tx)),
    deinstall: Some(|tx| owned::WEB.deinstall(tx)),
};

fn check_spec(text: &str) -> Result<String, String> {
    let spec = read::<WebSpec>(text)?.check().map_err(|bad| bad.to_string())?;
    written(&spec)
}

const NUMBER: SettingKind = SettingKind::Number { least: 0, most: i64::MAX };

const fn setting(
    name: &'static str,
    kind: SettingKind,
    default: Option<&'static str>,
    example: &'static str,
    about: &'static str,
) -> ConfigField {
    ConfigField { name, about, example, default, kind }
}

const SETTINGS: &[ConfigField] = &[
    setting(
        "basic.urls",
        SettingKind::Text,
        Some(""),
        r"^https://docs\.example/",
        "a regular expression for the URLs that get the name and password below, matched from the \
         start",
    ),
    setting("basic.user", SettingKind::Text, Some(""), "crawler", "the name"),
    setting("basic.password", SettingKind::Secret, None, "secret", "the password"),
    setting(
        "login.urls",
        SettingKind::Text,
        Some(""),
        r"^https://wiki\.example/",
        "a regular expression for documents that need a session",
    ),
    setting(
        "login.pages",
        SettingKind::List,
        Some(""),
        r"form ^https://wiki\.example/login ^signin$",
        "pages of the login sequence, each as KIND URLS MATCH [TARGET]; kinds are form, link, \
         redirect and content",
    ),
    setting(
        "login.fields",
        SettingKind::List,
        Some(""),
        "user=crawler",
        "fields to fill in their forms, each as NAME=VALUE",
    ),
    setting(
        "login.password_field",
        SettingKind::Text,
        Some(""),
        "password",
        "form field for the password",
    ),
    setting("login.password", SettingKind::Secret, None, "secret", "the password of a form"),
    setting(
        "forbid",
        SettingKind::List,
        Some(""),
        "allow_private",
        "what jobs of this connection must not do: allow_private (reach addresses that are not on \
         the public internet), ignore_robots (ignore robots.txt)",
    ),
];

const SPEC: &[ConfigField] = &[
    setting(
        "seeds",
        SettingKind::List,
        None,
        "https://example.com/",
        "URLs where the crawl begins",
    ),
    setting(
        "scope.reach",
        SettingKind::Choice(&["host", "domain", "prefix", "any"]),
        Some("host"),
        "domain",
        "how far the crawl goes from its seeds",
    ),
    setting(
        "scope.include",
        SettingKind::List,
        Some(""),
        "/docs/",
        "only URLs that match one of these regular expressions",
    ),
    setting(
        "scope.exclude",
        SettingKind::List,
        Some(""),
        r"\.zip$",
        "skip URLs that match one of these regular expressions",
    ),
    setting(
        "scope.exclude_content",
        SettingKind::List,
        Some(""),
        "(?i)page not found",
        "do not keep pages whose title or text matches one of these regular expressions",
    ),
    setting(
        "scope.media_types",
        SettingKind::List,
        Some(""),
        "text/*",
        "only keep documents of these media types",
    ),
    setting("scope.hops_max", NUMBER, None, "5", "largest number of links from the nearest seed"),
    setting(
        "pages_max",
        SettingKind::Number { least: 1, most: i64::MAX },
        None,
        "10000",
        "largest number of documents",
    ),
    setting(
        "host_pages",
        NUMBER,
        Some("10000"),
        "50000",
        "largest number of pages of a host that is not a seed's, plus 100 for each link to it \
         from another host; 0 for no limit",
    ),
    setting(
        "requisites",
        SettingKind::Choice(&["auto", "yes", "no"]),
        Some("auto"),
        "yes",
        "whether what pages need to be shown (style sheets, images, fonts) is fetched, on any host: \
             if an output takes it (auto), always (yes), or never (no)",
    ),
    setting(
        "requisites_max",
        NUMBER,
        Some("100000"),
        "500000",
        "largest number of these requisites, besides pages",
    ),
    setting(
        "delay_ms",
        SettingKind::Seconds,
        Some("1s"),
        "2s",
        "from the end of one request to a host to the start of the next",
    ),
    setting(
        "crawl_delay_max_ms",
        SettingKind::Seconds,
        Some("30s"),
        "1min",
        "longest Crawl-delay of robots.txt to obey",
    ),
    setting(
        "concurrency",
        SettingKind::Number { least: 1, most: CONCURRENCY_MAX as i64 },
        Some("32"),
        "64",
        "parallel requests, over all hosts",
    ),
    setting(
        "address_rate",
        SettingKind::Number { least: 0, most: 1_000 },
        Some("20"),
        "5",
        "requests per second to all hosts of one IP address, if the job has a delay; 0 for no \
         limit",
    ),
    setting(
        "address_requests",
        SettingKind::Number { least: 0, most: CONCURRENCY_MAX as i64 },
        Some("16"),
        "4",
        "parallel requests to all hosts of one IP address; 0 for no limit",
    ),
    setting(
        "robots",
        SettingKind::Choice(&["all", "data", "none"]),
        Some("data"),
        "none",
        "where robots.txt is obeyed: for documents (data), also for login pages (all), or never \
         (none)",
    ),
    setting(
        "meta_robots",
        SettingKind::Flag,
        Some("yes"),
        "no",
        "whether nofollow and noindex in pages are obeyed",
    ),
    setting(
        "allow_private",
        SettingKind::Flag,
        Some("no"),
        "no",
        "whether addresses that are not on the public internet are allowed",
    ),
    setting(
        "bodies",
        SettingKind::Flag,
        Some("yes"),
        "no",
        "whether the bytes of documents are kept",
    ),
    setting(
        "links",
        SettingKind::Choice(&["all", "external", "webindex", outlinks::OFF]),
        Some("all"),
        "external",
        "which links the link index counts: all, those to other domains (external), those that \
         Webindex counted (webindex), or none (off)",
    ),
    Searchable::SETTING,
    setting(
        "agent",
        SettingKind::Text,
        Some(concat!("driftline/", env!("CARGO_PKG_VERSION"))),
        "ExampleBot/1.0",
        "name of the crawler; robots.txt rules for the part before the slash apply",
    ),
    setting(
        "contact",
        SettingKind::Text,
        Some("https://crates.io/crates/driftline"),
        "mailto:crawl@example.com",
        "URL or mail address for site owners to contact",
    ),
    setting(
        "retries",
        SettingKind::Number { least: 0, most: 100 },
        Some("3"),
        "5",
        "number of retries after a temporary error",
    ),
    setting(
        "retry_ms",
        SettingKind::Seconds,
        Some("10s"),
        "30s",
        "time before the first retry; it doubles with each retry",
    ),
    setting(
        "patience_ms",
        SettingKind::Seconds,
        Some("5min"),
        "10min",
        "end the run if nothing can be done for this long",
    ),
    setting(
        "policy.drop_session_ids",
        SettingKind::Flag,
        Some("yes"),
        "yes",
        "whether session ids are dropped from URLs",
    ),
    setting(
        "policy.drop_broadvision",
        SettingKind::Flag,
        Some("no"),
        "yes",
        "whether BroadVision's BV_ session parameters are dropped",
    ),
    setting(
        "policy.drop_tracking",
        SettingKind::Flag,
        Some("yes"),
        "yes",
        "whether tracking parameters are dropped from URLs",
    ),
    setting(
        "policy.sort_query",
        SettingKind::Flag,
        Some("no"),
        "yes",
        "whether query parameters are sorted by name",
    ),
    setting(
        "policy.lower_case_path",
        SettingKind::Flag,
        Some("no"),
        "yes",
        "whether paths are lower-cased, for servers that ignore case",
    ),
    setting(
        "policy.keep_fragment",
        SettingKind::Flag,
        Some("no"),
        "no",
        "whether /a and /a#x are different documents",
    ),
];
