//! The program: wiring only.

// Standard error goes through `cli::stderr`, which nobody waits for, and answers through `say`:
// the macros panic when nobody reads any more.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod catalog;
mod cli;
mod definitions;
mod http;
mod refusal;
mod web;

/// Half of what the link index costs is small pieces of memory that come and go by the
/// million; this allocator does that in half the time of the C library's, and gives back what
/// is free (bench/links, bench/crawl). How it behaves is set in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
