//! The webhook output against a receiver that answers as real ones do.

use super::work::Webhook;
use super::*;
use crate::connectors::operations::{drop_, pairs, put};
use crate::output::{Operation, Outcome};
use crate::testing::receiver::Receiver;
use crate::testing::server::{Reply, Server};
use crate::testing::{Fault, Shelf, UNACCEPTABLE};
use serde_json::json;
use std::sync::{Arc, Mutex};

fn opened(fake: &Receiver, more: serde_json::Value) -> Webhook {
    let mut config = json!({"url": fake.server.url(), "timeout_ms": 2000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Webhook::open(&config.to_string()).unwrap()
}

fn texts(fake: &Receiver) -> Vec<(String, String)> {
    fake.shelf.field("text").into_iter().collect()
}

/// Whatever the way of sending, the receiver has what there is.
#[test]
fn documents_are_put_updated_and_removed_in_every_way_and_twice_is_as_once() {
    for (way, updates) in [
        (json!({}), 3),
        (json!({"method": "put", "removal": "delete"}), 3),
        (json!({"batch": 2}), 2),
        (json!({"batch": 200, "method": "put"}), 1),
    ] {
        let fake = Receiver::start();
        let mut output = opened(&fake, way.clone());
        output.check().unwrap();
        let operations =
            [put("http://a/1", "one"), put("http://a/2", "two"), drop_("http://a/3?x=1")];
        for _ in 0..2 {
            assert_eq!(output.apply("{}", &operations).unwrap(), vec![Outcome::Taken; 3], "{way}");
            assert_eq!(texts(&fake), pairs(&[("http://a/1", "one"), ("http://a/2", "two")]));
        }
        assert_eq!(fake.shelf.kept().updates, 2 * updates, "{way}");
        let moved = Operation { stale: vec!["http://a/1".into()], ..put("http://a/4", "one") };
        output.apply("{}", &[moved, drop_("http://a/2")]).unwrap();
        assert_eq!(texts(&fake), pairs(&[("http://a/4", "one")]), "{way}");
    }
}

#[test]
fn requests_are_signed_with_what_they_say() {
    let fake = Receiver::at(0, Shelf::default(), Some("sesame"));
    let mut stranger = opened(&fake, json!({"secret": "simsim"}));
    let unavailable = stranger.apply("{}", &[put("http://a/1", "one")]).unwrap_err();
    assert!(
        unavailable.why.contains("refuses our login") && !unavailable.why.contains("simsim"),
        "{unavailable:?}"
    );
    let mut friend = opened(&fake, json!({"secret": "sesame", "removal": "delete"}));
    let operations = [put("http://a/1", "one"), drop_("http://a/2")];
    assert_eq!(friend.apply("{}", &operations).unwrap(), vec![Outcome::Taken; 2]);
    assert_eq!(texts(&fake), pairs(&[("http://a/1", "one")]));
}

#[test]
fn a_document_that_is_refused_is_rejected_and_leaves_no_older_version() {
    for way in [json!({}), json!({"batch": 10}), json!({"removal": "delete"})] {
        let fake = Receiver::start();
        let mut output = opened(&fake, way.clone());
        output.apply("{}", &[put("http://a/1", "one")]).unwrap();
        let operations =
            [put("http://a/0", "0"), put("http://a/1", UNACCEPTABLE), put("http://a/2", "two")];
        let outcomes = output.apply("{}", &operations).unwrap();
        let Outcome::Rejected { code: "REFUSED", detail } = &outcomes[1] else { panic!("{way}") };
        assert!(detail.contains("422") && detail.contains("unacceptable"), "{detail}");
        assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Taken, &Outcome::Taken));
        assert_eq!(texts(&fake), pairs(&[("http://a/0", "0"), ("http://a/2", "two")]), "{way}");
    }
}

#[test]
fn a_receiver_without_room_is_asked_later_and_what_it_took_counts() {
    let fake = Receiver::start();
    let mut output = opened(&fake, json!({}));
    fake.shelf.fail([Fault::Busy(9)]);
    let unavailable = output.apply("{}", &[put("http://a/1", "one")]).unwrap_err();
    assert_eq!(unavailable.retry_ms, Some(9_000));
    fake.shelf.fail([Fault::Status(200), Fault::Busy(9)]);
    let operations =
        [put("http://a/1", "one"), put("http://a/2", "two"), put("http://a/3", "three")];
    let outcomes = output.apply("{}", &operations).unwrap();
    assert_eq!(outcomes[0], Outcome::Taken);
    assert!(outcomes[1..].iter().all(|it| matches!(it, Outcome::Later(_))), "{outcomes:?}");
}

#[test]
fn an_answer_that_is_lost_or_comes_from_a_wrong_address_is_no_answer() {
    let fake = Receiver::start();
    let mut output = opened(&fake, json!({}));
    for fault in [Fault::Half, Fault::Lost, Fault::Status(404), Fault::Status(504)] {
        fake.shelf.fail([fault.clone()]);
        assert!(output.apply("{}", &[put("http://a/1", "one")]).is_err(), "{fault:?}");
    }
    fake.shelf.fail([Fault::Status(500)]);
    let outcomes = output.apply("{}", &[put("http://a/1", "one")]).unwrap();
    assert!(matches!(&outcomes[0], Outcome::Trouble { code: "SERVER", .. }), "{outcomes:?}");
    drop(fake);
    assert!(output.check().unwrap_err().why.contains("refused"));
}

#[test]
fn an_address_may_name_the_document() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    let server = Server::start(move |request| {
        log.lock().unwrap().push(format!("{} {}", request.method, request.target));
        Reply::status(204)
    });
    let url = format!("{}/in/{{uri}}?id={{id}}", server.url());
    let config = json!({"url": url, "method": "put", "removal": "delete"});
    let mut output = Webhook::open(&config.to_string()).unwrap();
    output.apply("{}", &[put("http://a/x y?z=1", "one"), drop_("http://a/")]).unwrap();
    let asked = asked.lock().unwrap();
    assert!(asked[0].starts_with("PUT /in/http%3A%2F%2Fa%2Fx%20y%3Fz%3D1?id="), "{asked:?}");
    assert!(asked[1].starts_with("DELETE /in/http%3A%2F%2Fa%2F?id="), "{asked:?}");
    assert_ne!(asked[0].rsplit('=').next(), asked[1].rsplit('=').next());
}

#[test]
fn settings_that_cannot_be_used_are_refused_with_their_field() {
    for (config, word) in [
        (json!({}), "url"),
        (json!({"url": "http://a", "method": "get"}), "method"),
        (json!({"url": "http://a", "removal": "never"}), "removal"),
        (json!({"url": "http://a", "batch": 0}), "batch"),
        (json!({"url": "http://a/{uri}", "batch": 2}), "url"),
        (json!({"url": "http://a", "batch": 2, "removal": "delete"}), "removal"),
    ] {
        let refused = (CONNECTOR.check_config)(&config.to_string()).unwrap_err();
        assert!(refused.contains(word), "{config}: {refused}");
    }
}
