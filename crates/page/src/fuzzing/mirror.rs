//! What must hold for the files of a mirror, whatever the pages and x-files they come from.

use std::collections::HashSet;

use super::first_line;
use crate::html::Input;
use crate::mirror::dir_index::DirIndex;
use crate::mirror::names::{COMPONENT_BYTES_MAX, HashName, PATH_BYTES_MAX, path_name};
use crate::mirror::requisites;
use crate::mirror::rewrite::{self, Document, Target};
use crate::mirror::{ContentDigest, article, css, derive, react, rules, xfile};
use crate::url::{self, Policy};

/// Each of two lines is a URL.
pub(super) fn path_names(input: &[u8]) {
    let (first, second) = first_line(input);
    let [one, other] = [first, second].map(String::from_utf8_lossy);
    for url in [&*one, &*other] {
        name_is_safe(&path_name(url, "html")).expect("a safe name");
        assert_eq!(HashName::parse(&HashName::of(url).to_string()), Some(HashName::of(url)));
    }
    if one != other {
        names_do_not_meet(&one, &other).expect("two files");
    }
}

/// The input is a page.
pub(super) fn page(input: &[u8]) {
    const URL: &str = "http://a.example/dir/page.html?q";
    /// Attributes beyond a number are not looked at, and taking one away moves another in.
    const ATTRIBUTES_HERE_MAX: usize = 250;
    let document = |body| Document { body, url: URL, content_type: None };
    let absolute = rewrite::page(&document(input), None, &mut |_, _| Target::Missing);
    let again = rewrite::page(&document(&absolute), None, &mut |_, _| Target::Missing);
    let many = input.iter().filter(|byte| b" \t\n\r\x0c/'\"".contains(byte)).count();
    if many < ATTRIBUTES_HERE_MAX {
        assert!(absolute == again, "{}", String::from_utf8_lossy(&absolute));
    }
    let policy = Policy::NOTHING;
    let canonical = |found: &str| url::canonical(found, &policy).ok();
    let mut asked = HashSet::new();
    let members = rewrite::page(&document(input), Some("notice"), &mut |url, _| {
        asked.extend(canonical(url.as_str()));
        Target::Member("m/1".to_owned())
    });
    for requisite in requisites::of_page(&Input::new(input, URL, &policy)).list {
        assert!(asked.contains(&requisite.url), "needed and not rewritten: {requisite:?}");
    }
    rewrite::page(&document(&members), None, &mut |url, kind| {
        let is_rewritten = url.path() == "/dir/m/1" || many >= ATTRIBUTES_HERE_MAX;
        assert!(is_rewritten, "{kind:?} left: {url} in {}", String::from_utf8_lossy(&members));
        Target::Outside
    });
}

/// The input is an x-file.
pub(super) fn x_file(input: &[u8]) {
    let Ok(site) = xfile::read(input) else { return };
    let bytes = xfile::write(&site, Vec::new()).expect("what was read can be written");
    assert_eq!(xfile::read(&*bytes).expect("what was written can be read"), site);
    let apply = |index: DirIndex| {
        let reader = xfile::Reader::new(&*bytes).expect("what was written can be read");
        index.apply(reader, ContentDigest::of(&bytes))
    };
    let Ok(once) = apply(DirIndex::default()) else { return };
    assert_eq!(once.len(), once.walk().count(), "no node is lost");
    assert_eq!(apply(once.clone()).expect("applied twice"), once);
}

/// The input is a directory index.
pub(super) fn dir_index(input: &[u8]) {
    let Ok(index) = DirIndex::read(input) else { return };
    let bytes = index.write(Vec::new()).expect("what was read can be written");
    let again = DirIndex::read(&*bytes).expect("what was written can be read");
    assert_eq!(again, index);
    assert_eq!(again.write(Vec::new()).expect("what was read can be written"), bytes);
}

/// The input is an article's file, and a page that holds one.
pub(super) fn article_file(input: &[u8]) {
    let written = |it: &article::Article| article::write(it, Vec::new()).expect("within limits");
    if let Ok(found) = article::read(input) {
        let bytes = written(&found);
        assert_eq!(article::read(&*bytes).expect("what was written can be read"), found);
    }
    let page = article::Page {
        body: input,
        url: "https://a.example/dir/page.html",
        content_type: None,
        title: "title",
        last_modified_ms: None,
    };
    let found = article::extract(&page, None);
    assert!(found.body.len() <= article::BODY_BYTES_MAX);
    assert!(found.references.len() <= article::REFERENCES_MAX);
    assert_eq!(article::read(&*written(&found)).expect("what was written can be read"), found);
}

/// The first line is a URL, and behind the last line of dashes is a page; between them are rules.
pub(super) fn site_rules(input: &[u8]) {
    let (url, rest) = first_line(input);
    let (url, rest) = (String::from_utf8_lossy(url), String::from_utf8_lossy(rest));
    let (text, html) = rest.rsplit_once("\n---\n").unwrap_or((&*rest, ""));
    let derived = derive::derive(&url, html);
    assert!(derived.breadcrumbs.len() <= derive::BREADCRUMBS_MAX);
    assert!(derived.navigation.len() <= derive::NAVIGATION_MAX);
    let Ok(rules) = rules::Rules::parse(text) else { return };
    assert_eq!(rules::Rules::parse(text).expect("read once").digest(), rules.digest());
    let matches = rules.matches(&url, html);
    assert_eq!(matches.is_in_scope, rules.scope_of(&url).0);
    let base = ::url::Url::parse("https://a.example/").expect("a constant URL");
    let (is_inside, image_digest) = (|_: &_| true, |_: &_| None);
    let context =
        react::Context { base: &base, is_inside: &is_inside, image_digest: &image_digest };
    react::react(html, &rules.reactor, &context);
    let said: String = react::sentences(html).map(|sentence| sentence.text).collect();
    assert_eq!(said, html, "sentences put together");
}

/// What every path name keeps to.
pub(crate) fn name_is_safe(name: &str) -> Result<(), String> {
    let complaint = |what: &str| Err(format!("{name:?}: {what}"));
    if name.len() > PATH_BYTES_MAX || name.split('/').count() < 2 {
        return complaint("length");
    }
    for component in name.split('/') {
        if component.is_empty() || component.len() > COMPONENT_BYTES_MAX {
            return complaint("length of a component");
        }
        if component.starts_with(['.', '-', ' ']) || component.ends_with(['.', ' ']) {
            return complaint("first or last character");
        }
        let is_special = |ch: char| ch.is_control() || "\\:*?\"<>|".contains(ch);
        if component.chars().any(is_special) {
            return complaint("characters");
        }
        let base = component.split('.').next().unwrap_or("");
        let devices = ["con", "prn", "aux", "nul", "com1", "lpt9", "com¹"];
        if devices.iter().any(|device| base.eq_ignore_ascii_case(device)) {
            return complaint("a device of Windows");
        }
    }
    Ok(())
}

/// The files of two URLs can be beside each other, also where capitals are not told apart.
pub(crate) fn names_do_not_meet(one: &str, other: &str) -> Result<(), String> {
    let [first, second] = [one, other].map(|url| path_name(url, "html").to_lowercase());
    let is_above = |file: &str, path: &str| path.starts_with(&format!("{file}/"));
    let meet = first == second || is_above(&first, &second) || is_above(&second, &first);
    if meet { Err(format!("{one} is {first}, {other} is {second}")) } else { Ok(()) }
}

/// The input is a style sheet.
pub(super) fn style_sheet(input: &[u8]) {
    let sheet = css::decode(input, None, None);
    let found: Vec<_> = css::references(&sheet).collect();
    let mut end = 0;
    for reference in &found {
        assert!(reference.range.start >= end && reference.range.end <= sheet.len());
        end = reference.range.end;
        let raw = &sheet[reference.range.clone()];
        assert!(raw.len() * 3 >= reference.url.len() && !reference.url.trim_ascii().is_empty());
    }
    assert_eq!(css::rewrite(&sheet, |_| None), sheet, "nothing replaced");
    let named = |number: usize| format!("../a b/{number}\"'()\\</style>\n哈.png");
    let mut number = 0;
    let rewritten = css::rewrite(&sheet, |_| {
        number += 1;
        Some(named(number))
    });
    let again: Vec<_> = css::references(&rewritten).collect();
    assert_eq!(again.len(), found.len(), "the same references");
    for (at, (before, after)) in found.iter().zip(&again).enumerate() {
        assert_eq!((&*after.url, after.kind), (named(at + 1).as_str(), before.kind));
    }
    let bytes = css::encode(&rewritten);
    if !rewritten.starts_with("@charset \"") {
        assert_eq!(css::decode(&bytes, None, None), rewritten, "written and read");
    }
}
