//! The OpenSearch output against a server that answers as a real one does.

use super::work::OpenSearch as Output_;
use super::*;
use crate::connectors::operations::{drop_, pairs, put};
use crate::output::{Operation, Outcome};
use crate::testing::opensearch::OpenSearch;
use crate::testing::{Fault, UNACCEPTABLE};
use serde_json::json;

fn opened(fake: &OpenSearch) -> Output_ {
    let config = json!({"url": fake.server.url(), "index": "web", "timeout_ms": 2000});
    Output_::open(&config.to_string()).unwrap()
}

fn texts(fake: &OpenSearch) -> Vec<(String, String)> {
    fake.shelf.field("text").into_iter().collect()
}

#[test]
fn documents_are_put_updated_and_removed_and_twice_is_as_once() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    output.check().unwrap();
    let operations = [put("http://a/1", "one"), put("http://a/2", "two"), drop_("http://a/3")];
    for _ in 0..2 {
        assert_eq!(output.apply("{}", &operations).unwrap(), vec![Outcome::Taken; 3]);
        assert_eq!(texts(&fake), pairs(&[("http://a/1", "one"), ("http://a/2", "two")]));
    }
    let moved = Operation { stale: vec!["http://a/1".into()], ..put("http://a/4", "one") };
    let operations = [moved, put("http://a/2", "new")];
    assert_eq!(output.apply("{}", &operations).unwrap(), vec![Outcome::Taken; 2]);
    assert_eq!(texts(&fake), pairs(&[("http://a/2", "new"), ("http://a/4", "one")]));
    assert_eq!(fake.shelf.kept().commits, 0);
    output.job_over().unwrap();
    assert_eq!(fake.shelf.kept().commits, 1);
    assert_eq!(fake.shelf.kept().documents["http://a/2"]["uri"], "http://a/2");
}

#[test]
fn a_document_that_does_not_fit_is_rejected_with_its_reason_and_leaves_no_older_version() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    output.apply("{}", &[put("http://a/1", "one")]).unwrap();
    let operations = [put("http://a/1", UNACCEPTABLE), put("http://a/2", "two")];
    let outcomes = output.apply("{}", &operations).unwrap();
    let Outcome::Rejected { code: "MAPPING", detail } = &outcomes[0] else {
        panic!("{outcomes:?}")
    };
    assert!(detail.contains("failed to parse field [text]; no such thing"), "{detail}");
    assert_eq!(outcomes[1], Outcome::Taken);
    assert_eq!(texts(&fake), pairs(&[("http://a/2", "two")]));
}

#[test]
fn a_server_without_room_is_asked_later_and_says_when() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    fake.shelf.fail([Fault::Busy(9)]);
    let unavailable = output.apply("{}", &[put("http://a/1", "one")]).unwrap_err();
    assert!(
        unavailable.retry_ms == Some(9_000) && unavailable.why.contains("no room"),
        "{unavailable:?}"
    );
    // Some of a batch fit, and the rest is nobody's fault.
    fake.shelf.fail([Fault::BusyAfter(1)]);
    let outcomes =
        output.apply("{}", &[put("http://a/1", "one"), put("http://a/2", "two")]).unwrap();
    assert_eq!(outcomes[0], Outcome::Taken);
    assert!(
        matches!(&outcomes[1], Outcome::Later(unavailable) if unavailable.why.contains("rejected execution"))
    );
    fake.shelf.fail([Fault::BusyAfter(0)]);
    assert!(output.apply("{}", &[put("http://a/2", "two")]).is_err());
}

#[test]
fn a_conflict_is_tried_again() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    fake.shelf.fail([Fault::Conflict]);
    let outcomes = output.apply("{}", &[put("http://a/1", "one")]).unwrap();
    assert!(matches!(&outcomes[0], Outcome::Trouble { code: "CONFLICT", .. }), "{outcomes:?}");
    assert_eq!(output.apply("{}", &[put("http://a/1", "one")]).unwrap(), [Outcome::Taken]);
}

#[test]
fn an_answer_that_is_lost_is_no_answer() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    for fault in [Fault::Half, Fault::Lost, Fault::Status(503), Fault::Status(500)] {
        fake.shelf.fail([fault.clone()]);
        assert!(output.apply("{}", &[put("http://a/1", "one")]).is_err(), "{fault:?}");
    }
    assert_eq!(output.apply("{}", &[put("http://a/1", "one")]).unwrap(), [Outcome::Taken]);
    assert_eq!(texts(&fake), pairs(&[("http://a/1", "one")]));
    let port = fake.server.port();
    drop(fake);
    let unavailable = output.apply("{}", &[put("http://a/1", "one")]).unwrap_err();
    assert!(
        unavailable.why.contains(&port.to_string()) && unavailable.why.contains("refused"),
        "{unavailable:?}"
    );
    assert!(output.job_over().is_err());
}

#[test]
fn a_request_that_is_too_large_is_parted_and_a_document_that_is_rejected() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    fake.shelf.kept().bytes_max = Some(2_000);
    let mut operations: Vec<Operation> =
        (0..20).map(|number| put(&format!("http://a/{number}"), &"x".repeat(300))).collect();
    operations[7] = put("http://a/7", &"x".repeat(3_000));
    let outcomes = output.apply("{}", &operations).unwrap();
    for (at, outcome) in outcomes.iter().enumerate() {
        let is_rejected = matches!(outcome, Outcome::Rejected { code: "TOOLARGE", .. });
        assert_eq!(is_rejected, at == 7, "{at}: {outcome:?}");
    }
    assert_eq!(fake.shelf.kept().documents.len(), 19);
}

#[test]
fn a_login_is_sent_and_one_that_is_refused_blames_no_document() {
    let fake = OpenSearch::start();
    fake.shelf.kept().authorization = Some("Basic dXNlcjpodW50ZXIy".into());
    let mut stranger = opened(&fake);
    for unavailable in [
        stranger.check().unwrap_err(),
        stranger.apply("{}", &[put("http://a/1", "one")]).unwrap_err(),
        stranger.job_over().unwrap_err(),
    ] {
        assert!(unavailable.why.contains("refuses our login"), "{unavailable:?}");
    }
    let url = fake.server.url();
    let config = json!({"url": url, "user": "user", "password": "hunter2"});
    let mut user = Output_::open(&config.to_string()).unwrap();
    assert_eq!(user.apply("{}", &[put("http://a/1", "one")]).unwrap(), [Outcome::Taken]);
    fake.shelf.kept().authorization = Some("ApiKey abc".into());
    let mut key = Output_::open(&json!({"url": url, "api_key": "abc"}).to_string()).unwrap();
    assert_eq!(key.apply("{}", &[put("http://a/1", "one")]).unwrap(), [Outcome::Taken]);
}

#[test]
fn a_long_address_is_known_by_its_hash() {
    let fake = OpenSearch::start();
    let mut output = opened(&fake);
    let uri = format!("http://a/{}", "x".repeat(600));
    output.apply("{}", &[put(&uri, "long")]).unwrap();
    let id = fake.shelf.kept().documents.keys().next().unwrap().clone();
    assert_eq!((id.len(), texts(&fake).len()), (32, 1));
    assert_eq!(fake.shelf.kept().documents[&id]["uri"], uri.as_str());
    output.apply("{}", &[drop_(&uri)]).unwrap();
    assert!(texts(&fake).is_empty());
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_their_field() {
    let check = CONNECTOR.check_config;
    for (config, word) in [
        (json!({}), "url"),
        (json!({"url": "localhost:9200"}), "url"),
        (json!({"url": "http://a", "index": "Web"}), "index"),
        (json!({"url": "http://a", "index": "_web"}), "index"),
        (json!({"url": "http://a", "index": "a,b"}), "index"),
        (json!({"url": "http://a", "timeout_ms": 1}), "timeout_ms"),
    ] {
        let refused = check(&config.to_string()).unwrap_err();
        assert!(refused.contains(word), "{config}: {refused}");
    }
}
