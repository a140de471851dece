//! The one integration-test binary: tests of the program and of the tree it is
//! built from, a module each.

mod cli;
mod crawl;
mod demo;
mod extract;
mod screens;
mod site;
mod specmap;
mod tidy;
