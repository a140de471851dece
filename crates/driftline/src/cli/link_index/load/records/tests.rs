//! Every kind of record and line, by every policy.

use super::*;

const URL: &str = "http://www.a.com/1";
const DATE: &str = "2015-07-28T03:06:17Z";
const DATE_MS: i64 = 1_438_052_777_000;

fn record(kind: &str, media_type: &str, block: &str) -> SourceItem {
    let headers = [
        ("WARC-Type", kind),
        ("WARC-Target-URI", URL),
        ("WARC-Date", DATE),
        ("Content-Type", media_type),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    SourceItem::Record(Record { version: "1.1".into(), headers, block: block.into() })
}

/// A page with a link within its domain and one that leads elsewhere.
const LINKS: &str = "<a href=/2>two</a><a href=https://b.org/x>b</a>";

fn answer(status: u16, html: &str) -> SourceItem {
    let head = format!("HTTP/1.1 {status} x\r\nServer: s\r\nContent-Type: text/html\r\n\r\n");
    record("response", "application/http", &format!("{head}<title>T</title>{html}"))
}

fn extract(status: u16, links: &str) -> SourceItem {
    let json = format!(
        r#"{{"Envelope": {{"Payload-Metadata": {{"HTTP-Response-Metadata": {{
            "Response-Message": {{"Status": "{status}"}}, "Headers": {{"Server": "s"}},
            "HTML-Metadata": {{"Head": {{"Title": "T"}}, "Links": [{links}]}}}}}}}}}}"#
    );
    record("metadata", "application/json", &json)
}

const TOLD: &str = r#"{"path": "A@/href", "url": "/2", "text": "two"},
    {"path": "A@/href", "url": "https://b.org/x", "text": "b"}"#;
/// A link within the domain alone.
const OWN: &str = r#"{"path": "A@/href", "url": "/2", "text": "two"}"#;

fn judge(policy: LinkPolicy, item: &SourceItem) -> RecordMeaning {
    ConversionRules { policy, list: SuffixList::bundled(), is_wat: false }.judge(item)
}

/// A change in words: the row, and its links or why it is gone.
#[track_caller]
fn words(policy: LinkPolicy, item: &SourceItem) -> String {
    let change = match judge(policy, item) {
        RecordMeaning::Nothing => return "nothing".to_owned(),
        RecordMeaning::Unreadable => return "unreadable".to_owned(),
        RecordMeaning::Change(change) => change,
    };
    assert_eq!((change.date_ms, change.job, change.in_order), (DATE_MS, 0, false));
    match change.what {
        What::Gone(why) => format!("{} is gone: {why}", change.uri),
        What::Missing { status } => format!("{} is missing: {status}", change.uri),
        What::Seen => panic!("nothing is only seen"),
        What::Page(it) => {
            let links: Vec<&str> = it.links.iter().map(|link| &*link.uri).collect();
            format!("{} {} {}: {}", change.uri, it.status, it.title, links.join(" "))
        }
    }
}

const ROW: &str = "com.a>.www>o>/1";
const TWO: &str = "com.a>.www>o>/2";
const OTHER: &str = "org.b>>s>/x";

#[test]
fn a_page_has_the_links_of_the_policy() {
    for item in [answer(200, LINKS), extract(200, TOLD)] {
        let found = |policy| words(policy, &item);
        assert_eq!(found(LinkPolicy::All), format!("{ROW} 200 T: {TWO} {OTHER}"));
        assert_eq!(found(LinkPolicy::External), format!("{ROW} 200 T: {OTHER}"));
        assert_eq!(found(LinkPolicy::Webindex), format!("{ROW} 200 T: {OTHER}"));
    }
    let resource = record("resource", "text/html", LINKS);
    assert_eq!(words(LinkPolicy::All, &resource), format!("{ROW} 0 : {TWO} {OTHER}"));
}

#[test]
fn a_page_that_is_not_there_is_gone_and_a_failure_means_nothing() {
    for policy in [LinkPolicy::All, LinkPolicy::External, LinkPolicy::Webindex] {
        for (status, expected) in [
            (404, format!("{ROW} is gone: gone")),
            (410, format!("{ROW} is gone: gone")),
            (301, format!("{ROW} is gone: redirected")),
            (304, "nothing".to_owned()),
            (403, "nothing".to_owned()),
            (503, "nothing".to_owned()),
        ] {
            assert_eq!(words(policy, &answer(status, LINKS)), expected, "{policy:?} {status}");
            assert_eq!(words(policy, &extract(status, "")), expected, "{policy:?} {status}");
        }
    }
    // Webindex did not look at the status of what has links.
    let found = words(LinkPolicy::Webindex, &extract(404, TOLD));
    assert_eq!(found, format!("{ROW} 404 T: {OTHER}"));
}

#[test]
fn a_page_without_links_is_one_except_for_the_original() {
    for item in [answer(200, "<a href=/2>"), extract(200, OWN)] {
        assert_eq!(words(LinkPolicy::All, &item), format!("{ROW} 200 T: {TWO}"));
        assert_eq!(words(LinkPolicy::External, &item), format!("{ROW} 200 T: "));
        assert_eq!(words(LinkPolicy::Webindex, &item), format!("{ROW} is gone: no links"));
    }
}

#[test]
fn what_tells_of_no_answer_changes_nothing() {
    let request = r#"{"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {}}}}"#;
    let about = r#"{"Envelope": {"Payload-Metadata": {"WARC-Metadata-Metadata": {}}}}"#;
    for policy in [LinkPolicy::All, LinkPolicy::External, LinkPolicy::Webindex] {
        for block in [request, about, "{}"] {
            let found = words(policy, &record("metadata", "application/json", block));
            assert_eq!(found, "nothing", "{policy:?} {block}");
        }
        let broken = record("metadata", "application/json", "{");
        assert_eq!(words(policy, &broken), "unreadable");
        let undeclared = record("metadata", "text/plain", "via: x");
        assert_eq!(words(policy, &undeclared), "nothing");
    }
}

#[test]
fn a_line_is_a_page_by_every_policy() {
    let line = |links: &str| {
        let json = format!(
            r#"{{"url": "{URL}", "crawlDate": "{DATE}", "title": "T", "outboundLinks": [{links}]}}"#
        );
        SourceItem::Line(json.into_bytes())
    };
    let both = line(r#"{"url": "http://www.a.com/2"}, {"url": "https://b.org/x"}"#);
    assert_eq!(words(LinkPolicy::All, &both), format!("{ROW} 0 T: {TWO} {OTHER}"));
    assert_eq!(words(LinkPolicy::External, &both), format!("{ROW} 0 T: {OTHER}"));
    assert_eq!(words(LinkPolicy::Webindex, &both), format!("{ROW} 0 T: {OTHER}"));
    assert_eq!(words(LinkPolicy::Webindex, &line("")), format!("{ROW} is gone: no links"));
    assert_eq!(words(LinkPolicy::All, &line("")), format!("{ROW} 0 T: "));
    for policy in [LinkPolicy::All, LinkPolicy::Webindex] {
        for item in [
            SourceItem::Line(b"delete".to_vec()),
            SourceItem::Line(b"{}".to_vec()),
            SourceItem::LongLine,
        ] {
            assert_eq!(judge(policy, &item), RecordMeaning::Unreadable);
        }
    }
}

#[test]
fn what_has_no_date_is_older_than_all_that_has_one() {
    let RecordMeaning::Change(change) =
        judge(LinkPolicy::All, &SourceItem::Line(br#"{"url": "http://a.com/"}"#.to_vec()))
    else {
        panic!("it is a page")
    };
    assert_eq!(change.date_ms, 0);
}
