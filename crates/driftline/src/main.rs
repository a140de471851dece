//! The program: wiring only.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
