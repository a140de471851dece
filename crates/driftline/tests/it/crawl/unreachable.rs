//! An output or a repository that cannot be reached is named wherever somebody looks: with
//! since when, why, and how much waits.

use super::files::Tree;
use super::served::{Caller, Server, token};
use super::{Home, text};
use ::crawl::lifecycle::JobEvent;
use serde_json::Value;

/// What a verb prints.
#[track_caller]
fn said(home: &Home, args: &[&str]) -> String {
    let output = home.command(args).output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn an_output_that_cannot_be_reached_is_named_everywhere(home: Home) {
    let out = home.folder.path().join("out");
    std::fs::write(&out, "in the way").unwrap();
    let more = format!(
        "[[jobs.docs.pipeline]]\noutput = \"copy\"\n\
         [connections.output.copy]\nconnector = \"files\"\nsettings.directory = {:?}\n",
        out.display().to_string()
    );
    let tree = Tree::with(home, &more);
    let home = &tree.home;
    tree.change(JobEvent::Start { minimal: false });
    let server = Server::start(home, &[]);
    let me = Caller::new(&server, &token(home, "me", "admin"));
    let is_away = |it: &Value| it["outages"][0]["waiting"] == 3;
    let status = me.until("/api/v1/status", is_away);
    let outage = &status["outages"][0];
    assert_eq!((&outage["kind"], &outage["jobs"][0]), (&"output".into(), &"docs".into()));
    for verb in [
        &["status"][..],
        &["job", "show", "docs"],
        &["job", "list"],
        &["report", "queue"],
        &["doctor"],
    ] {
        let said = said(home, verb);
        for words in ["output copy cannot be reached since 2", "cannot be used", "3 documents wait"]
        {
            assert!(said.contains(words), "{verb:?}: {words:?} is not in {said}");
        }
    }
    let metrics = me.get("/metrics");
    for words in [
        "driftline_outages 1\n",
        "driftline_outage_waiting_documents{kind=\"output\",connection=\"copy\",job=\"\"} 3\n",
        "driftline_outage_since_seconds{kind=\"output\",connection=\"copy\",job=\"\"} ",
        "driftline_outage_info{kind=\"output\",connection=\"copy\",job=\"\",why=\"",
    ] {
        assert!(metrics.as_str().unwrap().contains(words), "{words:?} is not in {metrics}");
    }
    std::fs::remove_file(&out).unwrap();
    me.until("/api/v1/status", |it| it["outages"].as_array().is_some_and(Vec::is_empty));
    me.until("/api/v1/jobs/docs", |it| it["state"] == "INACTIVE");
    assert!(said(home, &["doctor"]).contains("no process waits for an output"));
    let log = server.ended();
    let line = |words: &str| log.iter().position(|it| it.to_string().contains(words));
    let (away, back) = (line("output copy cannot be reached"), line("output copy is not waited"));
    assert!(away.is_some() && away < back, "{log:?}");
}

#[test]
fn an_output_that_cannot_be_reached_is_named_everywhere_on_sqlite() {
    an_output_that_cannot_be_reached_is_named_everywhere(Home::directory());
}

#[test]
fn an_output_that_cannot_be_reached_is_named_everywhere_on_postgres() {
    let Some(home) = Home::database() else { return };
    an_output_that_cannot_be_reached_is_named_everywhere(home);
}

#[test]
fn a_job_that_cannot_start_because_its_repository_is_away_says_so() {
    let home = Home::directory();
    let definitions = "[connections.repository.shop]\nconnector = \"sql\"\n\
        settings.database = \"postgres://reader@127.0.0.1:1/shop\"\n\
        [jobs.items]\nconnection = \"shop\"\nspec.ids = \"SELECT 1\"\nspec.document = \"SELECT $1\"\n";
    let file = home.folder.path().join("items.toml");
    std::fs::write(&file, definitions).unwrap();
    for args in [&["init"][..], &["import", file.to_str().unwrap()], &["job", "start", "items"]] {
        said(&home, args);
    }
    let server = Server::start(&home, &[]);
    let me = Caller::new(&server, &token(&home, "me", "admin"));
    me.until("/api/v1/jobs/items", |it| it["outages"][0]["kind"] == "repository");
    let said = said(&home, &["job", "show", "items"]);
    assert!(said.contains("repository shop of job items cannot be reached since 2"), "{said}");
    assert!(said.contains("its run waits"), "{said}");
    server.ended();
}
