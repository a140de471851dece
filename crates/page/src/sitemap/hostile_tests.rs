//! Sitemaps made to hurt. None of these may take long, fill the memory or
//! bring in anything from outside.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn one(loc: &str) -> String {
    format!("<url><loc>{loc}</loc></url>")
}

/// Fills up to `length` bytes with elements and white space that say nothing.
fn fill(xml: &mut Vec<u8>, length: usize) {
    let filler = ["<x/>", &" ".repeat(1 << 20)].concat();
    while xml.len() + filler.len() <= length {
        xml.extend(filler.as_bytes());
    }
    xml.resize(length, b' ');
}

#[test]
fn an_external_entity_stays_what_was_written() {
    // A file that is surely there to be read.
    let canary = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let xml = format!(
        "<!DOCTYPE urlset [<!ENTITY x SYSTEM \"file://{}\"><!ENTITY % p SYSTEM \"http://127.0.0.1:1/p\"> %p;]>\
         <urlset>{}{}</urlset>",
        canary,
        one("https://a.example/&x;"),
        one("https://a.example/2"),
    );
    let sitemap = read(xml.as_bytes());
    let locs: Vec<&str> = sitemap.entries.iter().map(|entry| entry.loc.as_str()).collect();
    assert_eq!(locs, ["https://a.example/&x;", "https://a.example/2"]);
}

#[test]
fn an_external_dtd_is_passed_over() {
    let xml = "<!DOCTYPE urlset SYSTEM \"http://127.0.0.1:1/evil.dtd\"><urlset><url><loc>/a</loc></url></urlset>";
    assert_eq!(read(xml.as_bytes()).entries[0].loc, "/a");
}

#[test]
fn a_billion_laughs_are_not_laughed() {
    let mut xml = String::from("<!DOCTYPE urlset [<!ENTITY l0 \"lol\">");
    for level in 1..30 {
        let below = format!("&l{};", level - 1).repeat(10);
        xml.push_str(&format!("<!ENTITY l{level} \"{below}\">"));
    }
    xml.push_str(&format!("]><urlset>{}</urlset>", one("https://a.example/&l29;")));
    let sitemap = read(xml.as_bytes());
    assert_eq!(sitemap.entries[0].loc, "https://a.example/&l29;");
}

#[test]
fn a_huge_attribute_and_a_million_attributes_are_passed_over() {
    let huge = format!("<urlset a='{}'>{}</urlset>", "x".repeat(3 << 20), one("/a"));
    assert_eq!(read(huge.as_bytes()).entries.len(), 1);
    let many: String = (0..300_000).map(|n| format!(" a{n}=''")).collect();
    let many = format!("<urlset><url{many}><loc{many}>/a</loc></url></urlset>");
    assert_eq!(read(many.as_bytes()).entries.len(), 1);
}

#[test]
fn a_piece_that_would_fill_the_memory_ends_the_reading() {
    let long = "x".repeat(8 << 20);
    for piece in [
        long.clone(),
        format!("<a b='{long}'/>"),
        format!("<!--{long}-->"),
        format!("<![CDATA[{long}]]>"),
    ] {
        let xml = format!("<urlset>{}{piece}{}</urlset>", one("/a"), one("/b"));
        let sitemap = read(xml.as_bytes());
        assert_eq!((sitemap.entries.len(), sitemap.cut), (1, Some(Cut::LongPiece)));
    }
}

#[test]
fn deep_nesting_is_only_counted() {
    let deep = 300_000;
    let xml = format!(
        "<urlset>{}<url><x>{}{}</x><loc>/b</loc></url>",
        one("/a"),
        "<d>".repeat(deep),
        "</d>".repeat(deep)
    );
    let sitemap = read(xml.as_bytes());
    assert_eq!((sitemap.entries.len(), sitemap.malformed), (2, true));
    let open = "<urlset>".to_owned() + &one("/a") + &"<d>".repeat(deep);
    assert_eq!(read(open.as_bytes()).entries.len(), 1);
}

#[test]
fn the_first_50_000_of_60_000_addresses_are_kept() {
    let body: String = (0..60_000).map(|n| one(&format!("/{n}"))).collect();
    let sitemap = read(format!("<urlset>{body}</urlset>").as_bytes());
    assert_eq!((sitemap.entries.len(), sitemap.more_entries), (ENTRIES_MAX, true));
    assert_eq!(sitemap.entries[ENTRIES_MAX - 1].loc, "/49999");
    let lines: String = (0..60_000).map(|n| format!("http://a.example/{n}\n")).collect();
    let sitemap = read(lines.as_bytes());
    assert_eq!((sitemap.entries.len(), sitemap.more_entries), (ENTRIES_MAX, true));
}

#[test]
fn exactly_50_000_addresses_are_not_too_many() {
    let body: String = (0..ENTRIES_MAX).map(|_| one("/")).collect();
    let sitemap = read(format!("<urlset>{body}</urlset>").as_bytes());
    assert_eq!((sitemap.entries.len(), sitemap.more_entries), (ENTRIES_MAX, false));
}

#[test]
fn an_overlong_address_is_left_out_and_its_neighbours_stay() {
    let fits = "/".repeat(LOC_BYTES_MAX);
    let long = "/".repeat(LOC_BYTES_MAX + 1);
    let xml = format!("<urlset>{}{}{}</urlset>", one(&long), one(&fits), one(&"é".repeat(4_000)));
    let sitemap = read(xml.as_bytes());
    assert_eq!((sitemap.entries.len(), sitemap.skipped), (1, 2));
    assert_eq!(sitemap.entries[0].loc.len(), LOC_BYTES_MAX);
    let text =
        format!("http://{long}\nhttp://a.example/\n{}http://b.example/  \n", " ".repeat(9_000));
    let sitemap = read(text.as_bytes());
    assert_eq!((sitemap.entries.len(), sitemap.skipped), (2, 1));
}

#[test]
fn a_gzip_bomb_stops_early_and_keeps_what_came_first() {
    let mut xml = format!("<urlset>{}", one("/a")).into_bytes();
    fill(&mut xml, 24 << 20);
    let bomb = gzip(&xml);
    assert!(bomb.len() < 40_000, "{}", bomb.len());
    let sitemap = read(&bomb);
    assert_eq!((sitemap.entries.len(), sitemap.cut), (1, Some(Cut::Bomb)));
    assert!((1 << 20..24 << 20).contains(&sitemap.bytes), "{} unpacked", sitemap.bytes);
}

#[test]
fn gzip_inside_gzip_is_not_unpacked_again() {
    let inner = gzip(format!("<urlset>{}</urlset>", one("/a")).as_bytes());
    assert_eq!(read(&gzip(&inner)).entries.len(), 0);
}

#[test]
fn a_damaged_gzip_gives_what_it_held_before() {
    let body: String = (0..5_000).map(|n| one(&format!("/{n}"))).collect();
    let packed = gzip(format!("<urlset>{body}</urlset>").as_bytes());
    let sitemap = read(&packed[..packed.len() / 2]);
    assert_eq!(sitemap.cut, Some(Cut::Damaged));
    assert!(sitemap.entries.len() > 100, "{}", sitemap.entries.len());
}

#[test]
fn several_gzip_members_are_one_file() {
    let packed = [gzip(b"<urlset><url><loc>/a</loc></url>"), gzip(b"</urlset>")].concat();
    let sitemap = read(&packed);
    assert_eq!((sitemap.entries.len(), sitemap.malformed), (1, false));
}

#[test]
fn bytes_beyond_the_limit_are_not_read() {
    let mut xml = format!("<urlset>{}", one("/a")).into_bytes();
    fill(&mut xml, BYTES_MAX - 1);
    xml.extend(one("/b").as_bytes());
    let sitemap = read(&xml);
    assert_eq!((sitemap.entries.len(), sitemap.cut), (1, Some(Cut::TooLarge)));
    xml.truncate(BYTES_MAX - 9);
    xml.extend(b"</urlset>");
    let sitemap = read(&xml);
    assert_eq!((sitemap.cut, sitemap.malformed), (None, false));
}
