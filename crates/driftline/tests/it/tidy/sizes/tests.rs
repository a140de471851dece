//! Every measure complains about what is too large, and about nothing else.

use super::*;

fn file(text: &str) -> SourceFile {
    SourceFile { path: "crates/store/src/some.rs".to_owned(), text: text.to_owned() }
}

#[test]
fn a_file_is_measured_by_its_lines() {
    assert!(long_file(&file(&"x\n".repeat(FILE_LINES_MAX))).is_empty());
    let complaints = long_file(&file(&"x\n".repeat(FILE_LINES_MAX + 1)));
    assert_eq!(complaints, ["crates/store/src/some.rs:1: 451 lines, more than 450"]);
}

#[test]
fn a_function_is_measured_from_its_signature_to_its_end() {
    let function = |lines: usize| {
        let body = "    let s = \"}\"; // }\n".repeat(lines - 2);
        format!("fn first() {{}}\n\nfn long(\n    a: [u8; 4]) -> [u8; 4] {{\n{body}}}\n")
    };
    assert!(long_functions(&file(&function(FUNCTION_LINES_MAX - 1))).is_empty());
    let complaints = long_functions(&file(&function(FUNCTION_LINES_MAX)));
    assert_eq!(complaints, ["crates/store/src/some.rs:3: long has 61 lines, more than 60"]);
    let in_tests = format!("\nmod tests {{\n{}}}\n", function(FUNCTION_LINES_MAX));
    assert!(long_functions(&file(&in_tests)).is_empty());
}

#[test]
fn a_wide_struct_needs_a_reason_directly_above_it() {
    let with = |count: usize, above: &str| {
        let fields: String = (0..count).map(|at| format!("    f{at}: Map<u8, u8>,\n")).collect();
        format!("#[derive(Debug)]\n{above}pub struct Wide<'a> {{\n{fields}}}\n\nstruct Unit;\n")
    };
    assert!(wide_structs(&file(&with(FIELDS_MAX, ""))).is_empty());
    assert!(wide_structs(&file(&with(FIELDS_MAX + 1, "// tidy: wide a row\n"))).is_empty());
    assert_eq!(wide_structs(&file(&with(FIELDS_MAX + 1, "// tidy: wide\n"))).len(), 1);
    let complaints = wide_structs(&file(&with(FIELDS_MAX + 1, "")));
    assert!(complaints[0].starts_with("crates/store/src/some.rs:2: Wide has 16 fields"));
}

#[test]
fn a_tuple_is_found_among_parameters_in_whatever_way_it_is_taken() {
    for tuple in [
        "fn f((a, b): (u8, u8)) {}",
        "fn f(x: u8, it: &(u8, [u8; 2])) {}",
        "fn f<T: Fn(u8) -> u8>(x: T, it: &'a mut (u8, T)) {}",
        "pub fn f(\n    &self,\n    &(a, b): &(&str, &str),\n) {}",
    ] {
        assert_eq!(tuple_parameters(&file(tuple)).len(), 1, "{tuple}");
    }
    for plain in [
        "fn f(a: u8, (): ()) {}",
        "fn f(rows: &[(u8, u8)], map: impl Fn((u8, u8)) -> (u8, u8)) {}",
        "fn f(Pair { a, b }: Pair) -> (u8, u8) { g((1, 2)) }",
        "// fn f((a, b): (u8, u8)) {}",
        "type F = fn((u8, u8));",
    ] {
        assert!(tuple_parameters(&file(plain)).is_empty(), "{plain}");
    }
}
