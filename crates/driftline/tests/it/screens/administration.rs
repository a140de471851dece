//! What commands about definitions print, and about who changed them.

use super::Screens;
use super::crawled::Copy;
use super::redacted::Varying;

#[test]
fn connections() {
    let copy = Copy::new();
    let throttle = r"^www\.=12/min,conns=2,kb=100";
    Screens::of(&copy.data())
        .both(&["connection", "list"])
        .text(&["connection", "edit", "web", "--throttle", throttle])
        .both(&["connection", "show", "web"])
        .both(&["connection", "check", "web"])
        .text(&["hosts", "www.tides.example"])
        .text(&["connection", "create", "copy", "--connector", "files", "--kind", "output"])
        .text(&["connection", "delete", "web"])
        .text(&["connection", "show", "nothing"])
        .hold("connection");
}

#[test]
fn connectors() {
    let copy = Copy::new();
    Screens::of(&copy.data())
        .text(&["connector", "list"])
        .text(&["connector", "show", "web"])
        .text(&["connector", "show", "files"])
        .json(&["connector", "show", "null"])
        .text(&["connector", "deregister", "null"])
        .hold("connector");
}

#[test]
fn authorities_and_tokens() {
    let copy = Copy::new();
    let varying = Varying { texts: &[(r"\bdl_\S+|[0-9a-zA-Z_-]{40,}", "[secret]")], fields: &[] };
    Screens::of(&copy.data())
        .varying(varying)
        .text(&["authgroup", "list"])
        .text(&["authgroup", "create", "staff", "--description", "who works here"])
        .both(&["authgroup", "list"])
        .text(&["authgroup", "delete", "nobody"])
        .text(&["token", "list"])
        .text(&["token", "create", "me", "--role", "admin"])
        .both(&["token", "list"])
        .hold("authorities-and-tokens");
}

#[test]
fn export() {
    let copy = Copy::new();
    Screens::of(&copy.data()).both(&["export"]).hold("export");
}

#[test]
fn audit() {
    let copy = Copy::new();
    let varying = Varying { texts: &[(r"\b[0-9a-f]{64}\b", "[hash]")], fields: &[] };
    Screens::of(&copy.data())
        .varying(varying)
        .text(&["audit"])
        .text(&["authgroup", "create", "staff"])
        .json(&["audit", "--limit", "1"])
        .both(&["audit", "verify"])
        .hold("audit");
}
