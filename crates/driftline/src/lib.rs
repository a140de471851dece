//! The program as a library: `main` is all that the binary calls.
//!
//! Beside it, what tests use too is public: the small web on loopback, and the site of the demo.
//! Invariant: nothing else is, so that what nobody uses is noticed.

// Standard error goes through `stderr`, which nobody waits for, and answers through `say`:
// the macros panic when nobody reads any more.
// Public items of the program are for its own binary and tests: what says nothing beyond a name is
// left out.
#![allow(missing_docs)]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod catalog;
mod cli;
mod definitions;
pub mod demo_site;
mod http;
pub mod loopback_web;
mod place;
mod refusal;
mod stderr;
mod text;
mod verbs;

/// Does what the command line says.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
