//! Tidy: the rules of the tree that the compiler does not know.
//!
//! Reads the checkout as text and relies on nothing but its layout. A rule is a
//! function from a file to complaints, so that each has a test that it can
//! complain; the tests below hold every file of the checkout against them.

mod rules;
mod sizes;

use std::fs;
use std::path::{Path, PathBuf};

use rules::SourceFile;
use sizes::{LEFT, Left};

/// What a build, a run or an import leaves in a checkout, and data that others wrote.
const NOT_OURS: [&str; 8] =
    [".git", "target", "driftline-data", "data", "corpus", "artifacts", "work", "node_modules"];

/// Files we write as text; a name without an extension (Makefile, scripts) is one too.
const TEXT_EXTENSIONS: [&str; 11] =
    ["rs", "toml", "md", "sh", "py", "yml", "yaml", "html", "css", "js", "sql"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file of the checkout, with its path from the root.
fn checkout() -> Vec<SourceFile> {
    let root = root();
    let mut files = Vec::new();
    let mut pending = vec![root.clone()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("a directory of the checkout can be listed") {
            let entry = entry.expect("a directory of the checkout can be listed");
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().expect("an entry that was listed has a type");
            if NOT_OURS.iter().any(|skip| name == *skip) {
                continue;
            }
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() && is_text(&path) {
                files.extend(read(&root, &path));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The text of every source file.
pub fn sources() -> Vec<String> {
    let is_source = |file: &SourceFile| file.path.ends_with(".rs");
    checkout().into_iter().filter(is_source).map(|file| file.text).collect()
}

fn is_text(path: &Path) -> bool {
    path.extension().is_none_or(|extension| TEXT_EXTENSIONS.iter().any(|known| extension == *known))
}

/// None for a file that turns out not to be UTF-8 text.
fn read(root: &Path, path: &Path) -> Option<SourceFile> {
    let text = String::from_utf8(fs::read(path).ok()?).ok()?;
    let path = path.strip_prefix(root).expect("the walk began at the root");
    Some(SourceFile { path: path.to_string_lossy().replace('\\', "/"), text })
}

/// Holds every file of the checkout against one rule.
fn hold(rule: fn(&SourceFile) -> Vec<String>) {
    let complaints: Vec<String> = checkout().iter().flat_map(rule).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_walk_finds_sources_manifests_and_scripts() {
    let files = checkout();
    for expected in [
        "Makefile",
        "crates/driftline/tests/it/tidy.rs",
        "crates/page/Cargo.toml",
        "crates/page/src/lib.rs",
        "crates/store/src/lib.rs",
        "scripts/test",
    ] {
        assert!(files.iter().any(|file| file.path == expected), "{expected} was not found");
    }
    assert!(files.iter().all(|file| !file.path.starts_with("target/")));
}

#[test]
fn every_source_file_opens_with_its_job() {
    hold(rules::opens_with_its_job);
}

#[test]
fn no_source_file_is_too_long() {
    hold(rules::is_not_too_long);
}

#[test]
fn files_functions_structs_and_parameter_lists_grow_no_larger() {
    type Measure = fn(&SourceFile) -> Vec<String>;
    type Allowed = fn(&Left) -> usize;
    let measures: [(Measure, Allowed); 4] = [
        (sizes::long_file, |left| left.files),
        (sizes::long_functions, |left| left.functions),
        (sizes::wide_structs, |left| left.structs),
        (sizes::tuple_parameters, |left| left.tuples),
    ];
    let mut broken = Vec::new();
    for left in LEFT {
        let sources = format!("crates/{}/", left.owner);
        let files = checkout().into_iter().filter(|it| it.path.starts_with(&sources));
        let files: Vec<SourceFile> = files.filter(|it| it.path.ends_with(".rs")).collect();
        for (measure, allowed) in measures {
            let (complaints, allowed) =
                (files.iter().flat_map(measure).collect::<Vec<_>>(), allowed(&left));
            if complaints.len() > allowed {
                broken.push(format!("{} of {allowed} that are left:", complaints.len()));
                broken.extend(complaints);
            } else if complaints.len() < allowed {
                let (owner, count) = (left.owner, complaints.len());
                println!("{owner} has {count} left, not {allowed}: lower the number in sizes.rs");
            }
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    hold(rules::has_a_telling_name);
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    hold(rules::names_no_machine_path);
}

#[test]
fn sql_is_written_in_the_store_only() {
    hold(rules::leaves_sql_to_the_store);
}

#[test]
fn the_program_has_one_unit_for_bytes() {
    hold(rules::has_one_unit_for_bytes);
}

#[test]
fn crates_depend_downwards_only() {
    hold(rules::depends_downwards_only);
}

#[test]
fn the_databases_differ_in_at_most_five_statements() {
    let uses: Vec<String> = checkout().iter().flat_map(rules::dialect_exceptions).collect();
    println!("pick( is used {} times of {}", uses.len(), rules::DIALECT_EXCEPTIONS_MAX);
    assert!(uses.len() <= rules::DIALECT_EXCEPTIONS_MAX, "\n{}\n", uses.join("\n"));
}
