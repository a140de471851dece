//! The program: wiring only.

mod catalog;
mod cli;
mod definitions;
mod web;

fn main() -> std::process::ExitCode {
    cli::main()
}
