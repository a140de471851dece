//! How much a file, a function, a struct and a parameter list may hold: each measure takes one
//! source file of a crate and returns a complaint per place that is too large.
//!
//! What was too large when the measures were made is counted in [`LEFT`], by crate; the
//! counts may only shrink. Text is read without strings and comments ([`code`]), so that
//! brackets match; it is not parsed any further.

use super::rules::SourceFile;

/// Lines of a file.
const FILE_LINES_MAX: usize = 450;
/// Lines of a function, its signature included.
const FUNCTION_LINES_MAX: usize = 60;
/// Fields of a struct without a reason.
const FIELDS_MAX: usize = 15;
/// The reason for more fields stands directly above the struct, behind this.
const WIDE_MARKER: &str = "// tidy: wide ";

/// How much of a crate is still too large.
pub struct Left {
    pub owner: &'static str,
    pub files: usize,
    pub functions: usize,
    pub structs: usize,
    pub tuples: usize,
}

/// What is left to do. Whoever makes something smaller lowers the number.
pub const LEFT: [Left; 5] = [
    Left { owner: "page", files: 0, functions: 0, structs: 0, tuples: 0 },
    Left { owner: "store", files: 0, functions: 0, structs: 0, tuples: 0 },
    Left { owner: "outputs", files: 0, functions: 0, structs: 0, tuples: 0 },
    Left { owner: "crawl", files: 6, functions: 4, structs: 8, tuples: 96 },
    Left { owner: "driftline", files: 0, functions: 1, structs: 4, tuples: 0 },
];

/// The file, if it is too long.
pub fn long_file(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    match lines > FILE_LINES_MAX {
        true => vec![format!("{}:1: {lines} lines, more than {FILE_LINES_MAX}", file.path)],
        false => Vec::new(),
    }
}

/// Functions that are too long. Those of tests tell a story, and may.
pub fn long_functions(file: &SourceFile) -> Vec<String> {
    let code = program_code(file);
    let measured = functions(&code).into_iter().filter_map(|it| {
        let lines = code[it.begin..body_end(&code, it.parameters.1)?].matches('\n').count() + 1;
        Some((it, lines))
    });
    measured
        .filter(|(_, lines)| *lines > FUNCTION_LINES_MAX)
        .map(|(it, lines)| {
            let (at, name) = (line_of(&code, it.begin), it.name);
            format!("{}:{at}: {name} has {lines} lines, more than {FUNCTION_LINES_MAX}", file.path)
        })
        .collect()
}

/// Structs with many fields and no reason above them.
pub fn wide_structs(file: &SourceFile) -> Vec<String> {
    let code = program_code(file);
    let mut complaints = Vec::new();
    for (begin, name) in named(&code, "struct ") {
        let Some(open) = code[begin..].find(['{', ';', '(']).map(|at| begin + at) else { continue };
        if !code[open..].starts_with('{') {
            continue;
        }
        let fields = split(&code[open + 1..closing(&code, open)]).len();
        let at = line_of(&code, begin);
        let has_reason = file.text.lines().nth(at.saturating_sub(2)).is_some_and(|above| {
            above.trim().strip_prefix(WIDE_MARKER).is_some_and(|reason| !reason.trim().is_empty())
        });
        if fields > FIELDS_MAX && !has_reason {
            complaints.push(format!(
                "{}:{at}: {name} has {fields} fields and no `{WIDE_MARKER}<reason>` above it",
                file.path
            ));
        }
    }
    complaints
}

/// Functions with a tuple among their parameters: it hides what its members are.
pub fn tuple_parameters(file: &SourceFile) -> Vec<String> {
    let code = program_code(file);
    functions(&code)
        .into_iter()
        .filter(|it| {
            split(&code[it.parameters.0 + 1..it.parameters.1]).iter().any(|it| is_tuple(it))
        })
        .map(|it| {
            format!("{}:{}: {} has a tuple parameter", file.path, line_of(&code, it.begin), it.name)
        })
        .collect()
}

/// Whether a parameter is `(a, b): (A, B)` or `it: (A, B)`, by reference or not.
fn is_tuple(parameter: &str) -> bool {
    let begins = |text: &str| {
        let text = text.trim_start().trim_start_matches('&').trim_start();
        let text = match text.strip_prefix('\'') {
            Some(lifetime) => lifetime.trim_start_matches(|c: char| c.is_alphanumeric()),
            None => text,
        };
        let text = text.trim_start().trim_start_matches("mut ");
        text.starts_with('(') && split(&text[1..closing(text, 0)]).len() > 1
    };
    match parameter.split_once(':') {
        Some((_, kind)) => begins(parameter) || begins(kind),
        None => false,
    }
}

/// A function in the text of a file.
struct Function<'a> {
    name: &'a str,
    begin: usize,
    /// Where the list of parameters opens and closes.
    parameters: (usize, usize),
}

fn functions(code: &str) -> Vec<Function<'_>> {
    let found = named(code, "fn ").into_iter();
    found
        .filter_map(|(begin, name)| {
            let after_name = begin + "fn ".len() + name.len();
            let open = match code[after_name..].starts_with('<') {
                true => after_name + after_generics(&code[after_name..]),
                false => after_name,
            };
            let is_function = code[open..].starts_with('(');
            is_function.then(|| Function { name, begin, parameters: (open, closing(code, open)) })
        })
        .collect()
}

/// Where a keyword stands that is followed by a name, and the name.
fn named<'a>(code: &'a str, keyword: &str) -> Vec<(usize, &'a str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(keyword)
        .filter(|(at, _)| !code[..*at].ends_with(is_word))
        .map(|(at, _)| {
            let rest = &code[at + keyword.len()..];
            (at, &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())])
        })
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

/// The end of a function's body behind its parameters; `None` for one without a body.
fn body_end(code: &str, parameters_end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code[parameters_end + 1..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return None,
            '{' if depth == 0 => return Some(closing(code, parameters_end + 1 + at)),
            _ => {}
        }
    }
    None
}

/// How far generics reach that begin the text.
fn after_generics(text: &str) -> usize {
    let (mut depth, mut before) = (0, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
        before = c;
    }
    text.len()
}

/// The bracket that closes the one at a place; the end of the text if there is none.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at;
        }
    }
    code.len()
}

/// What commas separate that stand in no bracket of whatever kind.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut before, mut pieces) = (0_i32, 0, ' ', Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if !matches!(before, '-' | '=') => depth -= 1,
            ',' if depth == 0 => {
                pieces.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    pieces.push(&list[begin..]);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// The code of a file that goes into the program.
fn program_code(file: &SourceFile) -> String {
    let is_test = file.path.contains("/tests/") || file.path.ends_with("tests.rs");
    let text = if is_test { "" } else { file.text.as_str() };
    code(text.split("\nmod tests {").next().unwrap_or_default())
}

/// The text with strings, characters and comments blanked; lines stay where they are.
fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_in_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => string_end(rest),
            'r' if !is_in_word => raw_string_end(rest),
            '\'' => character_end(rest),
            _ => 0,
        };
        let (taken, is_blank) =
            if skipped > 0 { (skipped, true) } else { (first.len_utf8(), false) };
        match is_blank {
            true => out.extend(rest[..taken].chars().map(|c| if c == '\n' { c } else { ' ' })),
            false => out.push(first),
        }
        rest = &rest[taken..];
    }
    out
}

fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// 0 if no raw string begins here.
fn raw_string_end(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let from = 2 + hashes;
    text[from..].find(&end).map_or(text.len(), |at| from + at + end.len())
}

/// 0 for a lifetime.
fn character_end(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let Some((_, first)) = chars.next() else { return 0 };
    if first == '\\' {
        // The quote behind the escape; `'\''` has one of its own.
        return text[3..].find('\'').map_or(0, |at| 3 + at + 1);
    }
    match chars.next() {
        Some((at, '\'')) => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
