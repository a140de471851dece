//! What an update costs beside the first build.

use super::site::*;
use crate::mirror::{Mirror, MirrorSettings};

const PAGES: usize = 2_000;
/// Pages that change: 1 %.
const CHANGED: usize = PAGES / 100;

/// A page of the usual size, a third of it text and the rest markup and links.
fn document(at: usize, version: usize) -> Document {
    let mut body = format!("<title>{at}</title><link rel=stylesheet href=/s.css><p>{version}");
    for link in 0..30 {
        body += &format!("<li><a href=\"/p/{}.html\">{link}</a>", (at * 31 + link * 7) % PAGES);
    }
    for line in 0..180 {
        body +=
            &format!("<p class=line>{at} {line} {}</p>\n", "lorem ipsum dolor sit amet ".repeat(3));
    }
    page(&body)
}

#[test]
fn an_update_of_one_percent_writes_at_most_five_percent_of_the_first_build() {
    let place = tempfile::tempdir().unwrap();
    let settings = MirrorSettings { threads: 2, ..settings() };
    let mirror = Mirror::open(place.path(), &settings).unwrap();
    let path = |at: usize| url(&format!("p/{at}.html"));
    let mut all: Vec<_> =
        (0..PAGES).map(|at| delivered(&path(at), Some(&document(at, 0)))).collect();
    all.push(delivered(&url("s.css"), Some(&style("p {}"))));
    bring(&mirror, &all, 1).unwrap();
    let first = mirror.bytes_written();
    let changed: Vec<_> = (0..CHANGED)
        .map(|at| at * 97)
        .map(|at| delivered(&path(at), Some(&document(at, 1))))
        .collect();
    bring(&mirror, &changed, 2).unwrap();
    let update = mirror.bytes_written() - first;
    assert!(update * 20 <= first, "{update} bytes after {first}");
}
