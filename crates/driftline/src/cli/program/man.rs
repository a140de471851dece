//! `driftline man`: the manual, made from the command line itself.

use crate::cli::{command, print_whole, say};
use crate::text::shown;
use anyhow::Context;
use clap::Args as ClapArgs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the manual page, or write all pages to a directory
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline man ~/.local/share/man/man1")]
pub struct Args {
    /// Directory for a page for the program and one for each command; created if missing
    dir: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(dir) = &args.dir else {
        let page = page(program())?;
        match args.json {
            true => say(&serde_json::json!({"page": String::from_utf8_lossy(&page)}).to_string()),
            false => print_whole(&page)?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    let pages = write_pages(dir).with_context(|| {
        let dir = shown(&dir.display().to_string());
        format!("cannot write the manual to {dir}; name a directory that you can write to")
    })?;
    let place = dir.display().to_string();
    if args.json {
        say(&serde_json::json!({"man": place, "pages": pages}).to_string());
    } else {
        let place = shown(&place);
        say(&format!("{place} has {} pages; read one with: man {place}/{}", pages.len(), pages[0]));
    }
    Ok(ExitCode::SUCCESS)
}

/// The command line without the verb `help`, which has no page.
fn program() -> clap::Command {
    let mut program = command().disable_help_subcommand(true);
    // Gives every verb its full name, such as driftline-export-warc.
    program.build();
    program
}

fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}

/// Writes the program's page, then one for each verb and the verbs below it.
/// Returns their names.
fn write_pages(dir: &Path) -> std::io::Result<Vec<String>> {
    std::fs::create_dir_all(dir)?;
    let mut pages = Vec::new();
    let mut pending = vec![program()];
    while let Some(command) = pending.pop() {
        pending.extend(command.get_subcommands().cloned());
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let file = format!("{name}.1");
        std::fs::write(dir.join(&file), page(command)?)?;
        pages.push(file);
    }
    Ok(pages)
}
