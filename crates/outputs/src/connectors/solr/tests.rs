//! The Solr output against a server that answers as a real one does.

use super::work::Solr as Output_;
use super::*;
use crate::connectors::operations::{drop_, pairs, put};
use crate::output::{Operation, Outcome};
use crate::testing::solr::Solr;
use crate::testing::{Fault, UNACCEPTABLE};
use serde_json::json;

fn opened(fake: &Solr) -> Output_ {
    Output_::open(&json!({"url": fake.url(), "timeout_ms": 2000}).to_string()).unwrap()
}

fn texts(fake: &Solr) -> Vec<(String, String)> {
    fake.shelf.field("text").into_iter().collect()
}

#[test]
fn documents_are_put_updated_and_removed_and_twice_is_as_once() {
    let fake = Solr::start();
    let mut output = opened(&fake);
    output.check().unwrap();
    let operations = [put("http://a/1", "one"), put("http://a/2", "two"), drop_("http://a/3")];
    for _ in 0..2 {
        assert_eq!(output.apply("{}", &operations).unwrap(), vec![Outcome::Taken; 3]);
        assert_eq!(texts(&fake), pairs(&[("http://a/1", "one"), ("http://a/2", "two")]));
    }
    let moved = Operation { stale: vec!["http://a/1".into()], ..put("http://a/4", "one") };
    output.apply("{}", &[moved, drop_("http://a/2")]).unwrap();
    assert_eq!(texts(&fake), pairs(&[("http://a/4", "one")]));
    output.job_over().unwrap();
    assert_eq!(fake.shelf.kept().commits, 1);
}

/// Solr refuses a whole batch because of one document.
#[test]
fn one_bad_document_of_a_batch_is_found_and_the_others_are_taken() {
    let fake = Solr::start();
    let mut output = opened(&fake);
    let uri = |number: usize| format!("http://a/{number:03}");
    let mut operations: Vec<Operation> = (0..150).map(|number| put(&uri(number), "text")).collect();
    output.apply("{}", &operations).unwrap();
    for bad in [17, 120] {
        operations[bad] = put(&uri(bad), UNACCEPTABLE);
    }
    fake.shelf.kept().updates = 0;
    let outcomes = output.apply("{}", &operations).unwrap();
    for (at, outcome) in outcomes.iter().enumerate() {
        match at {
            17 | 120 => {
                let Outcome::Rejected { code: "SCHEMA", detail } = outcome else { panic!("{at}") };
                assert!(detail.contains("Error adding field 'text'"), "{detail}");
            }
            _ => assert_eq!(*outcome, Outcome::Taken, "{at}"),
        }
    }
    let kept = fake.shelf.kept();
    assert_eq!(kept.documents.len(), 148, "no older version stays");
    assert!(kept.updates < 40, "{} requests", kept.updates);
}

#[test]
fn a_server_without_room_is_asked_later_and_says_when() {
    let fake = Solr::start();
    let mut output = opened(&fake);
    fake.shelf.fail([Fault::Busy(9)]);
    let unavailable = output.apply("{}", &[put("http://a/1", "one")]).unwrap_err();
    assert!(
        unavailable.retry_ms == Some(9_000) && unavailable.why.contains("overloaded"),
        "{unavailable:?}"
    );
    assert_eq!(output.apply("{}", &[put("http://a/1", "one")]).unwrap(), [Outcome::Taken]);
}

#[test]
fn a_conflict_and_a_failure_are_tried_again_and_a_broken_server_is_away() {
    let fake = Solr::start();
    let mut output = opened(&fake);
    for fault in [Fault::Conflict, Fault::Status(500)] {
        fake.shelf.fail([fault]);
        let outcomes = output.apply("{}", &[put("http://a/1", "one")]).unwrap();
        assert!(matches!(&outcomes[0], Outcome::Trouble { .. }), "{outcomes:?}");
    }
    fake.shelf.fail(vec![Fault::Status(500); 20]);
    let operations: Vec<Operation> = (0..8).map(|it| put(&format!("http://a/{it}"), "x")).collect();
    let unavailable = output.apply("{}", &operations).unwrap_err();
    assert!(unavailable.why.contains("500"), "{unavailable:?}");
}

#[test]
fn an_answer_that_is_lost_is_no_answer() {
    let fake = Solr::start();
    let mut output = opened(&fake);
    for fault in [Fault::Half, Fault::Lost, Fault::Status(503), Fault::Status(404)] {
        fake.shelf.fail([fault.clone()]);
        assert!(output.apply("{}", &[put("http://a/1", "one")]).is_err(), "{fault:?}");
        fake.shelf.fail([fault.clone()]);
        assert!(output.apply("{}", &[drop_("http://a/1")]).is_err(), "{fault:?}");
    }
    assert_eq!(output.apply("{}", &[put("http://a/1", "one")]).unwrap(), [Outcome::Taken]);
    drop(fake);
    assert!(output.apply("{}", &[put("http://a/1", "one")]).unwrap_err().why.contains("refused"));
}

#[test]
fn a_core_that_knows_documents_by_another_field_is_named() {
    let fake = Solr::start();
    let config = json!({"url": fake.url(), "id_field": "key"});
    let mut output = Output_::open(&config.to_string()).unwrap();
    assert!(output.check().unwrap_err().why.contains("id_field=id"));
    let config = json!({"url": fake.server.url()});
    assert!(Output_::open(&config.to_string()).unwrap().check().is_err(), "there is no core");
    for config in [json!({}), json!({"url": "x"}), json!({"url": "http://a", "id_field": ""})] {
        assert!((CONNECTOR.check_config)(&config.to_string()).is_err(), "{config}");
    }
}
