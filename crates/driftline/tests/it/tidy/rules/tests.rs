//! Every rule complains about a file that breaks it and about no other.

use super::*;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

fn lines(count: usize, first: &str) -> String {
    format!("{first}\n{}", "\n".repeat(count - 1))
}

#[test]
fn a_file_without_its_job_is_named() {
    let path = "crates/page/src/url.rs";
    assert_eq!(opens_with_its_job(&file(path, "//! URLs.\n")), [""; 0]);
    assert_eq!(opens_with_its_job(&file("README.md", "# Driftline\n")), [""; 0]);
    for text in ["", "use std::fs;\n", "// URLs.\n", "//!\n"] {
        assert_eq!(opens_with_its_job(&file(path, text)).len(), 1, "{text:?}");
    }
}

#[test]
fn a_long_file_needs_a_reason_and_a_longer_one_has_none() {
    let path = "crates/page/src/url.rs";
    let reason = format!("{LONG_MARKER}one table");
    let complaints = |count, first| is_not_too_long(&file(path, &lines(count, first))).len();
    assert_eq!(complaints(LINES_WITHOUT_REASON_MAX, ""), 0);
    assert_eq!(complaints(LINES_WITHOUT_REASON_MAX + 1, ""), 1);
    assert_eq!(complaints(LINES_WITHOUT_REASON_MAX + 1, LONG_MARKER), 1);
    assert_eq!(complaints(LINES_WITHOUT_REASON_MAX + 1, &reason), 0);
    assert_eq!(complaints(LINES_MAX, &reason), 0);
    assert_eq!(complaints(LINES_MAX + 1, &reason), 1);
}

#[test]
fn empty_names_are_found_in_files_and_directories() {
    for path in ["crates/page/src/utils.rs", "crates/page/src/url/mod.rs", "a/common/url.rs"] {
        assert_eq!(has_a_telling_name(&file(path, "")).len(), 1, "{path}");
    }
    for path in ["crates/page/src/modes.rs", "crates/page/src/commons.rs", "docs/common.md"] {
        assert_eq!(has_a_telling_name(&file(path, "")).len(), 0, "{path}");
    }
}

#[test]
fn machine_paths_are_found_and_url_paths_are_not() {
    for machine in MACHINE_PATHS {
        let absolute = format!("a\nopen(\"{machine}x\")\n");
        let url = format!("GET https://a.example{machine}x\n");
        assert_eq!(names_no_machine_path(&file("docs/a.md", &absolute)).len(), 1);
        assert_eq!(names_no_machine_path(&file("docs/a.md", machine)).len(), 1);
        assert_eq!(names_no_machine_path(&file("docs/a.md", &url)).len(), 0);
    }
}

#[test]
fn sql_outside_the_store_is_found_in_program_text_only() {
    let complaints = |path, text| leaves_sql_to_the_store(&file(path, text)).len();
    let statement = "let sql = \"SELECT 1\";\n";
    assert_eq!(complaints("crates/crawl/src/seed.rs", statement), 1);
    assert_eq!(complaints("crates/store/src/tables/jobs.rs", statement), 0);
    assert_eq!(complaints("crates/crawl/src/seed/tests.rs", statement), 0);
    assert_eq!(complaints("crates/crawl/src/seed.rs", "// SELECT 1\n"), 0);
    assert_eq!(complaints("crates/crawl/src/seed.rs", &format!("mod tests {{\n{statement}}}")), 0);
}

#[test]
fn uses_of_pick_are_counted_without_its_definition() {
    let text = "pub fn pick(a: &str, b: &str) -> &str {\n\
                // pick(a, b)\n\
                let sql = pick(\"a\", \"b\");\n\
                let sql = dialect::pick(\"a\", \"b\");\n\
                cherry_pick(tree);\n";
    assert_eq!(dialect_exceptions(&file("crates/store/src/dialect.rs", text)).len(), 2);
    assert_eq!(dialect_exceptions(&file("crates/page/src/url.rs", text)).len(), 0);
}

#[test]
fn a_dependency_against_the_direction_is_found_in_every_form() {
    let complaints = |owner: &str, text: &str| {
        depends_downwards_only(&file(&format!("crates/{owner}/Cargo.toml"), text)).len()
    };
    assert_eq!(complaints("page", "[dependencies]\nstore.workspace = true\n"), 1);
    assert_eq!(complaints("crawl", "[dev-dependencies]\noutputs = { path = \"../outputs\" }\n"), 1);
    assert_eq!(complaints("store", "[dependencies.crawl]\nworkspace = true\n"), 1);
    assert_eq!(complaints("store", "[dependencies]\npage.workspace = true\nurl = \"2\"\n"), 0);
    assert_eq!(complaints("page", "[package]\nstore = \"no dependency\"\n"), 0);
    assert_eq!(complaints("attic", "[package]\n"), 1);
}

#[test]
fn a_binary_unit_is_found_in_what_the_program_says_and_nowhere_else() {
    let complaints = |path: &str, text: &str| has_one_unit_for_bytes(&file(path, text)).len();
    let said = "bail!(\"more than 64 MiB\");\n";
    assert_eq!(complaints("crates/page/src/url.rs", said), 1);
    assert_eq!(complaints("crates/page/src/url/tests.rs", said), 0);
    assert_eq!(complaints("crates/page/src/url.rs", "const A: u8 = 1; // 8 MiB\n"), 0);
    assert_eq!(complaints("docs/formats/bodies.md", said), 0);
}
