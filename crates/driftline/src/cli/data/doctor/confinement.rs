//! What somebody who takes a process over could do: who it runs as, and what the processes
//! that read documents are kept from. The latter are started and asked, nothing is guessed.

use crate::cli::crawls::extract::attempts::{AttemptOutcome, AttemptResult, Confinement};
use crate::cli::crawls::extract::walls::{Wall, Walls};
use crate::cli::crawls::run_as;
use crate::verbs::doctor::check::{Advice, Check};

const READER: &str = "document reader";
const WALLS: &str = "reader sandbox";
const WHY: &str = "a malicious PDF or Office file that exploits the reader could do that";

/// Whether the program runs as root.
pub fn user(id: u32) -> Check {
    const NAME: &str = "user";
    if id == 0 {
        let what = "this is root; `serve` and `work` need no root privileges";
        return Check::warn(NAME, what, Advice { why: run_as::ROOT, next: run_as::NOT_ROOT });
    }
    Check::ok(NAME, format!("not root, but user {id}"))
}

/// What readers of documents could do, and which walls are around them.
pub fn readers(found: &anyhow::Result<Confinement>) -> Vec<Check> {
    match found {
        Ok(found) => {
            let mut out = vec![attempts(found)];
            out.extend(walls(&found.walls));
            out
        }
        Err(error) => {
            let help = Advice {
                why: "PDF and Office files are read by processes of this program",
                next: "allow this user to start more processes (ulimit -u) and to execute the \
                     program's own file",
            };
            vec![Check::fail(READER, format!("it does not work: {error:#}"), help)]
        }
    }
}

fn attempts(found: &Confinement) -> Check {
    let (can, cannot): (Vec<&AttemptResult>, Vec<&AttemptResult>) =
        found.attempts.iter().partition(|it| it.outcome == AttemptOutcome::Done);
    let words = |which: Vec<&AttemptResult>| {
        let words: Vec<&str> = which.into_iter().map(|it| it.attempt.words()).collect();
        words.join(", ")
    };
    if can.is_empty() {
        return Check::ok(READER, format!("blocked, as tested: {}", words(cannot)));
    }
    let next = "use a system that has the sandbox features reported missing below";
    Check::fail(READER, format!("it can {}", words(can)), Advice { why: WHY, next })
}

/// A finding for what stands, and one for each wall that does not.
fn walls(walls: &Walls) -> Vec<Check> {
    let mut standing = Vec::new();
    let mut out = Vec::new();
    for (name, wall) in walls.named() {
        match wall {
            Wall::Full => standing.push(name.to_owned()),
            Wall::Partial(why) => standing.push(format!("{name} partially ({why})")),
            Wall::No(why) => out.push(missing(name, why)),
        }
    }
    if !standing.is_empty() {
        out.insert(0, Check::ok(WALLS, standing.join(", ")));
    }
    out
}

fn missing(name: &str, why: &str) -> Check {
    let help = Advice {
        why: "one layer of the sandbox for PDF and Office files is missing; the others and the \
             limits hold",
        next: "it comes with Linux 5.13 or later; containers may need a profile that allows it",
    };
    Check::warn(WALLS, format!("without {name}: {why}"), help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::crawls::extract::attempts::Attempt;
    use crate::verbs::doctor::check::CheckStatus;

    fn confinement(outcome: AttemptOutcome, landlock: Wall) -> anyhow::Result<Confinement> {
        let attempts = vec![
            AttemptResult { attempt: Attempt::OpenFile, outcome },
            AttemptResult { attempt: Attempt::Connect, outcome: AttemptOutcome::Ended },
        ];
        let (no_new_privileges, network_namespace, seccomp) = (Wall::Full, Wall::Full, Wall::Full);
        let walls = Walls { no_new_privileges, network_namespace, landlock, seccomp };
        Ok(Confinement { walls, attempts })
    }

    fn told(found: &anyhow::Result<Confinement>) -> Vec<(CheckStatus, String)> {
        readers(found).into_iter().map(|it| (it.verdict, it.what)).collect()
    }

    #[test]
    fn walls_that_are_missing_and_readers_that_are_free_are_told() {
        let refused = || AttemptOutcome::Refused("no".into());
        let well = told(&confinement(refused(), Wall::Partial("version 2".into())));
        assert_eq!(well.len(), 2, "{well:?}");
        assert!(well.iter().all(|(verdict, _)| *verdict == CheckStatus::Ok), "{well:?}");
        assert!(well[1].1.contains("landlock partially (version 2)"), "{well:?}");

        let less = told(&confinement(refused(), Wall::No("there is none".into())));
        assert_eq!(less[2], (CheckStatus::Warn, "without landlock: there is none".into()));

        let free = told(&confinement(AttemptOutcome::Done, Wall::Full));
        assert_eq!(free[0], (CheckStatus::Fail, "it can open files".into()));
        let none = told(&Err(anyhow::anyhow!("no process")));
        assert_eq!(none, [(CheckStatus::Fail, "it does not work: no process".into())]);
    }

    #[test]
    fn root_is_told_that_it_is_root() {
        assert_eq!(user(1_000).verdict, CheckStatus::Ok);
        assert_eq!(user(0).verdict, CheckStatus::Warn);
        assert!(user(0).next.unwrap().contains("--user NAME"));
    }
}
