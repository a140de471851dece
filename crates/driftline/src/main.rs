//! The program: wiring only.

mod cli;
mod web;

fn main() -> std::process::ExitCode {
    cli::main()
}
