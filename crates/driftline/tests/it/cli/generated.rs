//! Completions and manual pages: made from the command line, so they name all of it.

use std::process::Command;

use super::{PROGRAM, Place, assert_trouble, said, text};

fn answer(args: &[&str]) -> String {
    said(&Command::new(PROGRAM).args(args).output().unwrap())
}

/// The verbs as the help lists them.
fn verbs() -> Vec<String> {
    let verbs = listed(&answer(&["--help"]));
    for verb in ["backup", "completions", "copy", "man", "status"] {
        assert!(verbs.iter().any(|found| found == verb), "{verb} is not in {verbs:?}");
    }
    verbs
}

/// The commands that a help lists.
pub fn listed(help: &str) -> Vec<String> {
    let Some((_, rest)) = help.split_once("Commands:\n") else { return Vec::new() };
    let list = rest.split("\n\n").next().unwrap();
    list.lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn every_verb_has_an_example_and_an_answer_for_scripts() {
    for verb in verbs() {
        let help = answer(&[&verb, "--help"]);
        assert!(help.contains("Example") && help.contains("driftline "), "{verb}: {help}");
        let actions = listed(&help);
        assert!(help.contains("--json") || !actions.is_empty(), "{verb}: {help}");
        let mut left: Vec<Vec<String>> =
            actions.into_iter().map(|action| vec![verb.clone(), action]).collect();
        while let Some(action) = left.pop() {
            let mut words: Vec<&str> = action.iter().map(String::as_str).collect();
            words.push("--help");
            let help = answer(&words);
            assert!(help.contains("Example: driftline "), "{action:?}: {help}");
            // What has actions of its own leaves the answer to them.
            let below = listed(&help);
            assert!(help.contains("--json") || !below.is_empty(), "{action:?}: {help}");
            left.extend(below.into_iter().map(|it| [action.clone(), vec![it]].concat()));
        }
    }
}

#[test]
fn every_shell_completes_every_verb() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = answer(&["completions", shell]);
        let json: serde_json::Value =
            serde_json::from_str(&answer(&["completions", shell, "--json"])).unwrap();
        assert_eq!(
            (json["shell"].as_str(), json["script"].as_str()),
            (Some(shell), Some(&*script))
        );
        for verb in verbs() {
            assert!(script.contains(&verb), "{verb} is not in the completions of {shell}");
        }
        assert!(script.contains("to-objects"), "{shell}: options are completed too");
    }
    let unknown = Command::new(PROGRAM).args(["completions", "cmd"]).output().unwrap();
    assert_trouble(&unknown, &["cmd", "bash", "powershell"]);
}

#[test]
fn the_manual_has_a_page_for_every_verb() {
    let main = answer(&["man"]);
    assert!(main.starts_with(".ie"), "it is a manual page: {}", &main[..40]);
    let place = Place::new();
    let dir = place.path("man/man1");
    let json: serde_json::Value =
        serde_json::from_str(&answer(&["man", text(&dir), "--json"])).unwrap();
    let pages: Vec<&str> =
        json["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    assert_eq!(pages.len(), std::fs::read_dir(&dir).unwrap().count());
    assert_eq!(pages[0], "driftline.1");
    assert!(pages.contains(&"driftline-export-warc.1"), "{pages:?}");
    assert!(!main.contains("driftline\\-help(1)"), "no page is named that is not there");
    for verb in verbs() {
        assert!(main.contains(&format!("driftline\\-{verb}(1)")), "{verb} is not in the main page");
        let page = std::fs::read_to_string(dir.join(format!("driftline-{verb}.1"))).unwrap();
        assert!(page.contains("SYNOPSIS") && page.contains(&verb), "{page}");
    }
    // Written again, it is the same and not more.
    assert!(answer(&["man", text(&dir)]).contains(&format!("{} pages", pages.len())));
}

#[test]
fn a_manual_that_cannot_be_written_says_where() {
    let place = Place::new();
    let file = place.path("file");
    std::fs::write(&file, "x").unwrap();
    let refused = Command::new(PROGRAM).arg("man").arg(&file).output().unwrap();
    assert_trouble(&refused, &[text(&file), "name a directory"]);
}
