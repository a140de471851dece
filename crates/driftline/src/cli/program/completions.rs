//! `driftline completions`: what a shell needs to complete this program's arguments.

use crate::cli::{command, print_whole, say};
use clap::Args as ClapArgs;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print the completion script for a shell
///
/// Where to put it: for bash, a file in ~/.local/share/bash-completion/completions; for zsh, a file
/// named _driftline in a directory of $fpath; for fish, a file in ~/.config/fish/completions; for
/// PowerShell, the profile.
#[derive(ClapArgs)]
#[command(
    after_help = "Example: driftline completions fish > ~/.config/fish/completions/driftline.fish"
)]
pub struct Args {
    /// The shell
    shell: Shell,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut command = command();
    let name = command.get_name().to_owned();
    // Into memory first: the generator panics when its output cannot be written.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    if args.json {
        let script = String::from_utf8_lossy(&text);
        say(&serde_json::json!({"shell": args.shell.to_string(), "script": script}).to_string());
    } else {
        print_whole(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
