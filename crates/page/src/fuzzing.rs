//! What must hold for every input of every parser here, one function for each.
//!
//! The programs in `fuzz/` feed these functions endlessly, and the tests replay
//! the corpora through the same ones. Compiled for tests and with the feature
//! `fuzzing`; never part of the program. Invariant: a function that returns has
//! found its parser within its limits; one that finds otherwise panics.

mod addresses;
mod documents;
pub(crate) mod mirror;

use std::path::Path;

/// A property of a parser: panics for an input that breaks it.
pub type Target = fn(&[u8]);

/// Every target of this crate, by the name its corpus goes by.
pub const TARGETS: &[(&str, Target)] = &[
    ("article", mirror::article_file),
    ("charset", documents::charset),
    ("css", mirror::style_sheet),
    ("datetime", documents::datetime),
    ("dir_index", mirror::dir_index),
    ("directives", documents::directives),
    ("domain", addresses::domain),
    ("feed", documents::feed),
    ("forms", documents::forms),
    ("html", documents::html),
    ("office", documents::office),
    ("path_name", mirror::path_names),
    ("reply", documents::reply),
    ("rewrite", mirror::page),
    ("robots", addresses::robots),
    ("rules", mirror::site_rules),
    ("sitemap", documents::sitemap),
    ("sniff", documents::sniff),
    ("text", documents::text),
    ("uri", addresses::uri),
    ("url", addresses::url),
    ("wat", documents::wat),
    ("webindex", addresses::webindex),
    ("xfile", mirror::x_file),
];

/// Runs the target of this name, for the programs in `fuzz/`.
pub fn run(targets: &[(&str, Target)], name: &str, input: &[u8]) {
    let (_, target) = targets.iter().find(|(known, _)| *known == name).expect("a known target");
    target(input);
}

/// Runs every file of `corpora/<target>` through its target. A target without
/// any is an error: it would be tested with nothing.
pub fn replay(corpora: &Path, targets: &[(&str, Target)]) -> std::io::Result<()> {
    for (name, target) in targets {
        let mut files = 0;
        for entry in std::fs::read_dir(corpora.join(name))? {
            let path = entry?.path();
            // The name of the input that a panic below is about.
            tell(&path);
            target(&std::fs::read(&path)?);
            files += 1;
        }
        if files == 0 {
            return Err(std::io::Error::other(format!("the corpus of {name} is empty")));
        }
    }
    Ok(())
}

#[allow(clippy::print_stderr)] // Tests show it when they fail, and only then.
fn tell(path: &Path) {
    eprintln!("replaying {}", path.display());
}

/// The first line, and what is behind it.
fn first_line(input: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', input);
    end.map_or((input, &[]), |end| (&input[..end], &input[end + 1..]))
}

#[cfg(test)]
mod tests;
