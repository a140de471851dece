//! `driftline doctor`: looks at the machine, the directory and the data, and says of
//! everything that is not well what it is, why it matters and what to do.
//!
//! `machine`, `confinement` and `directory` look, and the verb of the same name at the rows; each
//! check is a value. Invariants: nothing
//! is repaired and nothing is left behind; no check waits for long; the network is
//! asked only with `--online`.

mod confinement;
mod directory;
mod machine;

use crate::cli::crawls::extract::attempts;
use crate::cli::say;
use crate::place::Place;
use crate::text::{count, shown};
use crate::verbs::doctor::check::{Advice, Check, CheckStatus};
use crate::verbs::doctor::{Doctor, data};
use clap::Args as ClapArgs;
use serde_json::json;
use std::process::ExitCode;
use store::clock;
use store::datadir::Layout;
use store::objects::Objects;

/// Check the machine, the data and the connections, and suggest fixes
#[derive(ClapArgs)]
#[command(
    after_help = "Exit code: 0 no check failed, 1 a check failed, 2 error.\n\nExample: driftline doctor --online"
)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Also try to reach the web, or the given host and port
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1,
          default_missing_value = "example.com:443")]
    online: Option<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let now_ms = clock::now_ms();
    let mut checks = machine::checks(now_ms, args.online.as_deref());
    let readers = attempts::look();
    checks.push(confinement::user(rustix::process::geteuid().as_raw()));
    checks.extend(confinement::readers(&readers));
    let there = match args.place.directory() {
        Some(root) => {
            let layout = Layout::new(root);
            checks.extend(directory::checks(&layout, now_ms));
            layout.exists()
        }
        None => true,
    };
    if there {
        checks.extend(rows(&args.place));
        checks.push(objects(&args.place));
    }
    let number = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let failed = number(CheckStatus::Fail);
    if args.place.json() {
        let answer = json!({"checks": checks, "failed": failed, "readers": readers.ok()});
        say(&answer.to_string());
    } else {
        checks.iter().flat_map(lines).for_each(|line| say(&line));
        let warnings = i64::try_from(number(CheckStatus::Warn)).unwrap_or(i64::MAX);
        say(&format!(
            "{} ok, {}, {failed} failed, {} skipped",
            number(CheckStatus::Ok),
            count(warnings, "warning"),
            number(CheckStatus::Skip)
        ));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the rows say of themselves; that they cannot be asked is a finding too.
fn rows(place: &Place) -> Vec<Check> {
    place.ask::<Doctor>(()).unwrap_or_else(|error| {
        let help = Advice { why: "all data is in it", next: "the message says what to do" };
        vec![Check::fail("database", format!("{error:#}"), help)]
    })
}

/// Whether objects can be kept. A place that is not named is not looked at.
fn objects(place: &Place) -> Check {
    if !place.has_objects() {
        let hint = "not checked; name their location with --objects";
        return Check::skip("objects", hint);
    }
    let opened = place.location().and_then(|location| Ok(Objects::open(&location)?));
    match opened {
        Ok(opened) => data::objects(&opened),
        Err(error) => {
            let help = Advice {
                why: "facts and bodies are kept there",
                next: "the message says what to do",
            };
            Check::fail("objects", format!("{error:#}"), help)
        }
    }
}

fn lines(check: &Check) -> Vec<String> {
    let mut out =
        vec![format!("{:<4}  {:<15}  {}", check.verdict.word(), check.name, shown(&check.what))];
    for more in [&check.why, &check.next].into_iter().flatten() {
        out.push(format!("{:23}{}", "", shown(more)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_says_why_and_what_next() {
        let check = Check::warn(
            "open files",
            "at most 9\u{1b}",
            Advice { why: "because", next: "raise it" },
        );
        assert_eq!(
            lines(&check),
            [
                "warn  open files       at most 9\\u{1b}",
                "                       because",
                "                       raise it",
            ]
        );
        assert_eq!(lines(&Check::ok("clock", "fine")), ["ok    clock            fine"]);
    }
}
