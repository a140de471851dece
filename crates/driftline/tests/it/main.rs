//! The one integration-test binary: tests of the program and of the tree it is
//! built from, a module each.

mod cli;
mod crawl;
mod demo;
mod extract;
#[path = "../../src/cli/demo/sample.rs"]
mod sample;
mod site;
mod specmap;
mod tidy;
#[path = "../../src/web.rs"]
mod web;
