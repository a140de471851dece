//! The program: wiring only.

mod cli;
mod web;

/// Facts are made on one thread and dropped on another, for which the system's
/// allocator takes half as long again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
