//! What a document leads to, as a page and as a requisite.

use super::*;
use crate::definitions::{RequisitesFor, WebSpec};
use crate::job::JobWork;
use crate::job::fixture::{attended, work};
use crate::scope::ScopeRules;
use page::facts::{Directives, Requisite};

const PAGE: &str = "http://a.example/page";

fn job(requisites: RequisitesFor, scope: ScopeRules) -> JobWork {
    let mut attended = attended(1);
    let seeds = vec!["http://a.example/".to_owned()];
    let spec = WebSpec { seeds, requisites, scope, ..WebSpec::default() };
    attended.job.docspec = spec.to_json();
    JobWork::new(&attended, &work(1).shared).expect("a definition that is right")
}

fn facts() -> Facts {
    use ReferenceKind as Kind;
    let link = |url: &str| Link {
        url: url.to_owned(),
        anchor: String::new(),
        kind: LinkKind::A,
        rel: Rel::default(),
    };
    let needs = |url: &str, kind| Requisite { url: url.to_owned(), kind };
    Facts {
        links: vec![link("http://a.example/b"), link("http://b.example/c")],
        requisites: vec![
            needs("http://cdn.example/a.css", Kind::Stylesheet),
            needs("http://a.example/b", Kind::Image),
            needs(PAGE, Kind::Frame),
            needs("http://cdn.example/x.zip", Kind::Object),
        ],
        ..Facts::default()
    }
}

fn at(role: DocumentRole, levels: i64) -> Standing {
    Standing { hops: 1, role, levels }
}

/// Each target with its role, or the code it is cut with, and how many requisites lead to it.
fn found(job: &JobWork, from: Standing, facts: &Facts) -> Vec<(String, &'static str, i64)> {
    let web = job.web().expect("a web job");
    let told = |it: Target| {
        let what = it.cut.map_or(it.role.name(), ReasonCode::name);
        (it.url.replace("http://", ""), what, it.levels)
    };
    targets_of(web, PAGE, from, facts, &[]).into_iter().map(told).collect()
}

fn expected(all: &[(&str, &'static str, i64)]) -> Vec<(String, &'static str, i64)> {
    all.iter().map(|(url, what, levels)| ((*url).to_owned(), *what, *levels)).collect()
}

const LINKS: (&str, &str, i64) = ("a.example/b", "page", 0);

#[test]
fn a_job_that_wants_no_requisites_follows_links_alone() {
    for wish in [RequisitesFor::Auto, RequisitesFor::No] {
        let job = job(wish, ScopeRules::default());
        assert_eq!(found(&job, at(DocumentRole::Page, 0), &facts()), expected(&[LINKS]));
    }
}

#[test]
fn what_a_page_needs_is_followed_beyond_the_scope_but_not_against_an_exclude() {
    let scope = ScopeRules {
        include: vec!["/b$".into()],
        exclude: vec![r"\.zip$".into()],
        media_types: vec!["text/html".into()],
        ..ScopeRules::default()
    };
    let job = job(RequisitesFor::Yes, scope);
    let sheet = ("cdn.example/a.css", "requisite", 1);
    let image = ("a.example/b", "requisite", LEVELS_MAX);
    let from = at(DocumentRole::Page, 0);
    assert_eq!(found(&job, from, &facts()), expected(&[LINKS, sheet, image]));
    let robots = Directives { nofollow: true, ..Directives::default() };
    let silent = Facts { directives: robots, ..facts() };
    assert_eq!(found(&job, from, &silent), expected(&[sheet, image]), "nofollow is about links");
    let trap = "http://cdn.example/a/b/a/b/a/b/a/b/a/b/a/b";
    let needs = Requisite { url: trap.to_owned(), kind: ReferenceKind::Image };
    let trapped = Facts { requisites: vec![needs], ..Facts::default() };
    assert_eq!(
        found(&job, from, &trapped),
        expected(&[(&trap[7..], "trap", LEVELS_MAX)]),
        "the shape of its URL counts"
    );
}

#[test]
fn a_requisite_leads_to_requisites_alone_and_to_none_at_the_last_level() {
    let job = job(RequisitesFor::Yes, ScopeRules::default());
    let leads = |levels| found(&job, at(DocumentRole::Requisite, levels), &facts());
    let next = |levels| {
        expected(&[
            ("cdn.example/a.css", "requisite", levels),
            ("a.example/b", "requisite", LEVELS_MAX),
            ("cdn.example/x.zip", "requisite", levels),
        ])
    };
    assert_eq!(leads(1), next(2));
    assert_eq!(leads(LEVELS_MAX - 1), next(LEVELS_MAX));
    assert_eq!(leads(LEVELS_MAX), []);
}
