//! The rules themselves: each takes one file and returns a complaint per place
//! that breaks it, `path:line: what is wrong`.
//!
//! They look at lines, not at syntax. What they miss a reviewer sees; what they
//! find is certain enough to fail a build.

/// One text file of the checkout. The path is relative to its root, with `/`.
pub struct SourceFile {
    /// For example `crates/page/src/lib.rs`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Above this a file says why it is long.
pub const LINES_WITHOUT_REASON_MAX: usize = 600;
/// Above this nothing excuses it.
pub const LINES_MAX: usize = 1000;
/// How far down the reason for a long file may stand.
const REASON_WITHIN_LINES: usize = 30;
const LONG_MARKER: &str = "// tidy: allow-long ";
/// Statements that may be written once per database.
pub const DIALECT_EXCEPTIONS_MAX: usize = 5;

/// A file's name says what is in it; these say nothing, or hide it from the editor.
const EMPTY_NAMES: [&str; 9] =
    ["common", "helper", "helpers", "manager", "misc", "mod", "shared", "util", "utils"];

/// Written in two halves, so that this file keeps its own rule.
const MACHINE_PATHS: [&str; 3] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

const SQL: [&str; 6] =
    ["SELECT ", "INSERT INTO ", "DELETE FROM ", "CREATE TABLE ", "ALTER TABLE ", "DROP TABLE "];

/// Units that are not those of `page::bytesize`.
const BINARY_UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// The direction of dependencies: a crate, and the crates of ours it may use.
const DIRECTION: [(&str, &[&str]); 5] = [
    ("page", &[]),
    ("store", &["page"]),
    ("crawl", &["page", "store"]),
    ("outputs", &["page", "store"]),
    ("driftline", &["page", "store", "crawl", "outputs"]),
];

impl SourceFile {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate under `crates/` that the file belongs to.
    fn owner(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The numbered lines that go into the program: no tests, no comments.
    fn program_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let in_tests = self.path.contains("/tests/") || self.path.ends_with("/tests.rs");
        let text = if in_tests { "" } else { self.text.as_str() };
        text.lines()
            .enumerate()
            .take_while(|(_, line)| line.trim() != "mod tests {")
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// The first line of a source file is its `//!` documentation.
pub fn opens_with_its_job(file: &SourceFile) -> Vec<String> {
    let opens = file.text.starts_with("//! ");
    if !file.is_rust() || opens {
        return Vec::new();
    }
    vec![format!("{}:1: does not open with `//! ` and its job", file.path)]
}

/// A source file has a length that can be read, or a reason.
pub fn is_not_too_long(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    let has_reason = file
        .text
        .lines()
        .take(REASON_WITHIN_LINES)
        .filter_map(|line| line.strip_prefix(LONG_MARKER))
        .any(|reason| !reason.trim().is_empty());
    if !file.is_rust() || lines <= LINES_WITHOUT_REASON_MAX {
        return Vec::new();
    }
    if lines > LINES_MAX {
        return vec![format!("{}:1: {lines} lines, more than {LINES_MAX}", file.path)];
    }
    if has_reason {
        return Vec::new();
    }
    vec![format!("{}:1: {lines} lines and no `{LONG_MARKER}<reason>`", file.path)]
}

/// Neither a source file nor a directory it lies in has an empty name.
pub fn has_a_telling_name(file: &SourceFile) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    file.path
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| EMPTY_NAMES.contains(part))
        .map(|part| format!("{}:1: `{part}` does not say what is in it", file.path))
        .collect()
}

/// No line names an absolute path that exists on somebody's machine only. A path
/// inside a URL is none: something other than a quote or a space precedes it.
pub fn names_no_machine_path(file: &SourceFile) -> Vec<String> {
    let is_absolute = |line: &str, at: usize| {
        line[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "\"'`=(:".contains(c))
    };
    let breaks = |line: &str| {
        MACHINE_PATHS
            .iter()
            .any(|path| line.match_indices(path).any(|(at, _)| is_absolute(line, at)))
    };
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| breaks(line))
        .map(|(index, line)| format!("{}:{}: machine path: {}", file.path, index + 1, line.trim()))
        .collect()
}

/// Statements stand in `store`; other crates call its functions.
pub fn leaves_sql_to_the_store(file: &SourceFile) -> Vec<String> {
    let bound = file.is_rust() && file.owner().is_some_and(|owner| owner != "store");
    if !bound {
        return Vec::new();
    }
    file.program_lines()
        .filter(|(_, line)| SQL.iter().any(|words| line.contains(words)))
        .map(|(number, line)| format!("{}:{number}: SQL: {}", file.path, line.trim()))
        .collect()
}

/// What the program says of bytes is written by `page::bytesize`, in decimal units.
pub fn has_one_unit_for_bytes(file: &SourceFile) -> Vec<String> {
    let is_said = |line: &str| {
        // Every second piece between quotes is text.
        let texts = line.split('"').skip(1).step_by(2);
        texts.into_iter().any(|text| BINARY_UNITS.iter().any(|unit| text.contains(unit)))
    };
    let is_bound = file.is_rust() && file.owner().is_some();
    file.program_lines()
        .filter(|(_, line)| is_bound && is_said(line))
        .map(|(number, line)| format!("{}:{number}: binary unit: {}", file.path, line.trim()))
        .collect()
}

/// Every use of `pick(sqlite, postgres)` in `store`, without its definition.
pub fn dialect_exceptions(file: &SourceFile) -> Vec<String> {
    if !file.is_rust() || file.owner() != Some("store") {
        return Vec::new();
    }
    let is_use = |line: &str| {
        line.match_indices("pick(").any(|(at, _)| {
            let before = &line[..at];
            let other_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            !other_name && !before.trim_end().ends_with("fn")
        })
    };
    file.program_lines()
        .filter(|(_, line)| is_use(line))
        .map(|(number, line)| format!("{}:{number}: {}", file.path, line.trim()))
        .collect()
}

/// A crate's manifest names only those of our crates that lie below it.
pub fn depends_downwards_only(file: &SourceFile) -> Vec<String> {
    let Some(owner) = file.owner().filter(|_| file.path.ends_with("/Cargo.toml")) else {
        return Vec::new();
    };
    let Some((_, allowed)) = DIRECTION.iter().find(|(name, _)| *name == owner) else {
        return vec![format!("{}:1: `{owner}` has no place in the direction", file.path)];
    };
    dependencies(&file.text)
        .filter(|(_, name)| DIRECTION.iter().any(|(ours, _)| ours == name))
        .filter(|(_, name)| !allowed.contains(name))
        .map(|(line, name)| format!("{}:{line}: `{owner}` may not use `{name}`", file.path))
        .collect()
}

/// The dependencies a manifest names, in every kind of section, with their lines.
fn dependencies(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_section = false;
    manifest.lines().enumerate().filter_map(move |(index, line)| {
        if let Some(header) = line.trim().strip_prefix('[') {
            let header = header.trim_end_matches(']');
            in_section = header.ends_with("dependencies");
            let (_, name) = header.split_once("dependencies.")?;
            return Some((index + 1, name));
        }
        let name = line.split(['=', '.', ' ']).next()?;
        (in_section && !name.is_empty()).then_some((index + 1, name))
    })
}

#[cfg(test)]
mod tests;
