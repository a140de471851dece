//! The help of the program and of every command, a file for each command of the first level.

use std::process::Command;

use super::{SNAPSHOTS, command, hold};
use crate::cli::listed_commands;

/// The help of a command, which ends well and says nothing else.
fn help(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let mut command: Command = command(&words);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    format!("$ driftline {}\n{}", words.join(" "), String::from_utf8(output.stdout).unwrap())
}

/// The help of a command and of all below it, in the order in which they are listed.
fn all_below(words: &[String]) -> String {
    let own = help(words);
    let below = listed_commands(&own).into_iter().map(|it| all_below(&[words, &[it]].concat()));
    std::iter::once(own.clone()).chain(below).collect::<Vec<String>>().join("\n\n")
}

#[test]
fn every_help_is_as_it_was_written() {
    let own = help(&[]);
    hold("help", &own);
    let names = listed_commands(&own);
    for name in &names {
        hold(&format!("help-{name}"), &all_below(std::slice::from_ref(name)));
    }
    for entry in std::fs::read_dir(SNAPSHOTS).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let held = file.strip_prefix("help-").and_then(|it| it.strip_suffix(".snap"));
        assert!(
            held.is_none_or(|it| names.iter().any(|name| name == it)),
            "{file} is of no command"
        );
    }
}
