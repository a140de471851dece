//! `driftline why`: the one reason for which a URL is or is not there, in a sentence,
//! with what to do about it.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::shown;
use crate::verbs::jobs::why::cause::Cause;
use crate::verbs::jobs::why::{Why, WhyReason, WhyRequest, WhyResponse};
use anyhow::bail;
use clap::Args as ClapArgs;
use std::process::ExitCode;

/// Explain why a URL is stored or not
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline why https://example.com/page --job example")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Job to ask [default: every job that knows the URL]
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// The URL; without a scheme, http and https are both tried
    url: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let response = args.place.ask::<Why>(WhyRequest { url: args.url, job: args.job })?;
    refuse_other_texts(&response)?;
    match args.place.json() {
        true => say_json(&response)?,
        false => lines(&response, &args.place.flags()).iter().for_each(|line| say(line)),
    }
    Ok(ExitCode::SUCCESS)
}

/// A text that is no web address is a mistake of the question, not an answer to it.
fn refuse_other_texts(response: &WhyResponse) -> anyhow::Result<()> {
    match response.answers.first() {
        Some(first) if first.code == Cause::NotWeb.code() => {
            let next = first.next.as_deref().unwrap_or_default();
            bail!("{:?}: {} {next}", response.asked, first.sentence)
        }
        _ => Ok(()),
    }
}

/// An answer as people read it. The flags name the place in a command that is suggested.
pub fn lines(response: &WhyResponse, flags: &str) -> Vec<String> {
    let lines_of = |reason| job_lines(&response.asked, reason, flags);
    let each: Vec<Vec<String>> = response.answers.iter().map(lines_of).collect();
    each.join(&String::new())
}

/// What people read of one job.
fn job_lines(asked: &str, reason: &WhyReason, flags: &str) -> Vec<String> {
    let url = reason.url.as_deref().unwrap_or(asked);
    let job = reason.job.as_deref().map_or(String::new(), |job| format!(" (job {})", shown(job)));
    let mut out = vec![format!("{}{job}", shown(url))];
    if reason.url.is_some() && url != asked {
        out.push(format!("    This is the canonical form of {}.", shown(asked)));
    }
    out.push(format!("    {}", shown(&reason.sentence)));
    if let Some(next) = &reason.next {
        let command = reason.command.as_ref().map(|command| format!(": {}{flags}", shown(command)));
        out.push(format!("    {}{}", shown(next), command.unwrap_or_default()));
    }
    for detail in &reason.details {
        out.push(format!("      {:<12} {}", shown(&detail.name), shown(&detail.value)));
    }
    out
}
