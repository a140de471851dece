//! The program: wiring only.

mod catalog;
mod cli;
mod definitions;
mod http;
mod refusal;
mod web;

/// Half of what the link index costs is small pieces of memory that come and go by the
/// million; this allocator does that in half the time of the C library's (bench/links).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
