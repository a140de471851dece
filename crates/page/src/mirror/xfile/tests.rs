//! The seed's example, everything that is ours, and what is refused.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::mirror::{DEPTH_MAX, Error, VALUE_BYTES_MAX};

/// The example of the seed, its open elements closed.
const SEED: &str = include_str!("fixtures/seed.xml");
/// An x-file with everything that can be in one.
const PUBLISHED: &str = include_str!("fixtures/published.xml");

fn written(site: &WebSite) -> String {
    String::from_utf8(write(site, Vec::new()).unwrap()).unwrap()
}

fn refused(xml: &str) -> Error {
    read(xml.as_bytes()).unwrap_err()
}

fn site(node: Node) -> WebSite {
    WebSite { header: Header::default(), node }
}

#[test]
fn the_example_of_the_seed_is_an_x_file() {
    let site = read(SEED.as_bytes()).unwrap();
    assert_eq!((&*site.header.editor, &*site.header.info), ("genghailong", "zhong guo haerbin"));
    assert_eq!(site.header.publication, None);
    let (column, list) = (&site.node.node_list[0], &site.node.node_list[0].node_list[0]);
    assert_eq!(site.node.kind(), NodeKind::Column);
    assert_eq!((column.kind(), list.kind()), (NodeKind::Column, NodeKind::List));
    assert_eq!(column.url, "http://www.harbin.gov.cn/zwxxgk/zfgg/zfgg2012.htm#");
    assert_eq!(list.name, "2012年政府公告");
    let article = &list.node_list[0];
    assert_eq!(article.name, "哈尔滨电业局关于部分线路停电的通知 ", "with the blank at its end");
    assert_eq!((article.kind(), article.operation), (NodeKind::Article, Operation::Add));
    assert_eq!(article.hash_name.to_string(), "5b56522727af88520ede8aa93bb4f918");
    assert_eq!(list.node_list.len(), 2);
    assert_eq!(read(written(&site).as_bytes()).unwrap(), site);
}

fn publication() -> Publication {
    let sha256 = ContentDigest::of(b"");
    Publication {
        epoch: "3f2a".to_owned(),
        number: 7,
        stage: Stage::Published,
        previous: Some(Previous { number: 6, sha256 }),
        base: 5,
        oldest: 2,
        started_ms: 1_700_000_000_000,
        completed_ms: Some(1_700_000_001_000),
        producer: "driftline 0.1.0".to_owned(),
        rules: Some(sha256),
        outcome: Outcome::Complete,
        cut: vec![PartCommit { part: 0, commit: 12 }, PartCommit { part: 3, commit: 4 }],
    }
}

/// What `fixtures/published.xml` holds.
fn published() -> WebSite {
    let sha256 = ContentDigest::of(b"");
    let stored = |length, media_type: &str| {
        Content::Stored(Box::new(Stored {
            sha256,
            length,
            media_type: media_type.to_owned(),
            charset: Some("GBK".to_owned()),
            status: Some(200),
            fetched_ms: Some(1_700_000_000_500),
        }))
    };
    let url = |path: &str| format!("https://a.example/{path}");
    let node = |path: &str, name: &str, operation| Node::new(&url(path), name, operation);
    let added = Node {
        kind: Some(NodeKind::Article),
        order: Some(-3),
        content: stored(12, "text/html"),
        last_modified_ms: Some(1_699_999_999_000),
        etag: Some("W/\"a&b\"\t\n".to_owned()),
        ..node("news/3.html#", " <Third> & \"last\"\r\n", Operation::Add)
    };
    let moved = Node {
        previous_url: Some(url("old/2.html")),
        content: Content::Pending,
        ..node("news/2.html", "Zweite _x0000_\0", Operation::Update)
    };
    let removed = Node {
        removal: Some(Removal {
            reason: RemovalReason::Gone,
            first_missing_ms: 1_699_000_000_000,
            confirmations: 3,
        }),
        ..node("news/1.html", "", Operation::Remove)
    };
    let news = Node {
        kind: Some(NodeKind::List),
        is_covered: true,
        refresh_rate_s: Some(3_600),
        node_list: vec![added, moved, removed],
        ..node("news/", "News", Operation::Keep)
    };
    let style = Node {
        kind: Some(NodeKind::Requisite),
        content: stored(7, "text/css"),
        ..node("style.css", "", Operation::Update)
    };
    let root = Node {
        kind: Some(NodeKind::Column),
        node_list: vec![news, style],
        ..node("", "Example", Operation::Keep)
    };
    let header = Header {
        editor: "editor".to_owned(),
        info: "an example".to_owned(),
        publication: Some(publication()),
    };
    WebSite { header, node: root }
}

#[test]
fn everything_of_ours_is_written_as_in_the_fixture_and_read_again() {
    assert_eq!(written(&published()), PUBLISHED);
    assert_eq!(read(PUBLISHED.as_bytes()).unwrap(), published());
}

#[test]
fn an_operation_that_is_not_known_stops_a_reader() {
    let error = refused(&SEED.replacen("<type>add", "<type>merge", 1));
    assert!(matches!(error, Error::UnknownOperation(word) if word == "merge"));
    let error = refused(&PUBLISHED.replace("format=\"1\"", "format=\"2\""));
    assert!(matches!(error, Error::UnknownFormat { .. }), "{error}");
}

#[test]
fn damaged_files_are_refused_as_a_whole() {
    let cut = |text: &str, at: usize| text[..text.floor_char_boundary(at)].to_owned();
    for at in (0..SEED.len() - 12).step_by(7) {
        refused(&cut(SEED, at));
    }
    for (from, to) in [
        ("<url>http://www.harbin.gov.cn/</url>", ""),
        ("<type>add</type>", ""),
        ("e31258c2", "e31258c3"),
        ("e31258c2c3dd45d4256a577fc7d5b55a", "../../../etc/passwd"),
        ("<website>", "<!DOCTYPE website><website>"),
        ("<website>", "<site>"),
        ("<website>", "text<website>"),
        ("UTF-8", "GB2312"),
        ("genghailong", "&geng;"),
        ("</website>", "</website><website/>"),
        ("<info>", "<editor>x</editor><info>"),
        ("<nodeList>", "<node><url>x</url><type>add</type></node><nodeList>"),
    ] {
        assert!(SEED.contains(from), "{from}");
        refused(&SEED.replacen(from, to, 1));
    }
    refused(&SEED.replace("</node>\n</website>", "</node><node/></website>"));
    let (front, back) = SEED.split_at(SEED.find("genghailong").unwrap());
    let mut not_utf8 = front.as_bytes().to_vec();
    not_utf8.push(0xff);
    not_utf8.extend_from_slice(back.as_bytes());
    assert!(read(&*not_utf8).is_err());
}

#[test]
fn attributes_that_cannot_be_meant_are_refused() {
    for (from, to) in [
        ("number=\"7\"", "number=\"-7\""),
        ("number=\"7\" ", "number=\"7\" number=\"8\" "),
        (" previous=\"6\"", ""),
        ("stage=\"published\"", "stage=\"thrown\""),
        ("outcome=\"complete\" ", ""),
        ("cut=\"0:12 3:4\"", "cut=\"3:4 0:12\""),
        ("cut=\"0:12 3:4\"", "cut=\"0\""),
        ("kind=\"list\"", "kind=\"heap\""),
        ("order=\"-3\"", "order=\"first\""),
        ("covered=\"true\"", "covered=\"perhaps\""),
        ("content=\"pending\"", "content=\"soon\""),
        (" length=\"12\"", ""),
        ("reason=\"gone\"", "reason=\"bored\""),
        (" confirmations=\"3\"", ""),
    ] {
        assert!(PUBLISHED.contains(from), "{from}");
        refused(&PUBLISHED.replacen(from, to, 1));
    }
}

#[test]
fn other_elements_and_attributes_are_passed_over() {
    let more = SEED
        .replace("<info>", "<crawlTime x='1'>a<b>c</b></crawlTime><info>")
        .replace("<node>", "<node more='1'><!-- x --><?y?>")
        .replace("</nodeList>", "text<other><node/></other></nodeList>");
    assert_eq!(read(more.as_bytes()).unwrap(), read(SEED.as_bytes()).unwrap());
}

fn chain(levels: usize) -> Node {
    let mut node = Node::new("https://a.example/0", "", Operation::Add);
    for level in 1..levels {
        let below = node;
        node = Node::new(&format!("https://a.example/{level}"), "", Operation::Keep);
        node.node_list.push(below);
    }
    node
}

#[test]
fn depth_and_values_have_limits_for_writers_and_readers() {
    let deepest = site(chain(DEPTH_MAX));
    assert_eq!(read(written(&deepest).as_bytes()).unwrap(), deepest);
    let error = write(&site(chain(DEPTH_MAX + 1)), Vec::new()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: DEPTH_MAX, .. }), "{error}");
    let list = "<node><url>a</url><type>keep</type><nodeList>".repeat(DEPTH_MAX + 1);
    assert!(matches!(refused(&format!("<website>{list}")), Error::TooLarge { .. }));
    assert!(matches!(
        refused(&format!("<website>{}", "<a>".repeat(100_000))),
        Error::TooLarge { .. }
    ));

    let named = |name: String| site(Node { name, ..Node::new("a", "", Operation::Add) });
    let longest = named("é".repeat(VALUE_BYTES_MAX / 2));
    assert_eq!(read(written(&longest).as_bytes()).unwrap(), longest);
    let escaped = named("\0".repeat(VALUE_BYTES_MAX));
    assert_eq!(read(written(&escaped).as_bytes()).unwrap(), escaped);
    assert!(write(&named("x".repeat(VALUE_BYTES_MAX + 1)), Vec::new()).is_err());
    let too_long = |text: &str| SEED.replacen("genghailong", text, 1);
    assert!(matches!(refused(&too_long(&"x".repeat(VALUE_BYTES_MAX + 1))), Error::TooLarge { .. }));
    for endless in ["x", "&lt;", "<!-- x -->", "<b/>"] {
        read(too_long(&endless.repeat(1_000_000 / endless.len())).as_bytes()).ok();
    }
    assert!(matches!(
        refused(&too_long(&"&lt;".repeat(VALUE_BYTES_MAX + 1))),
        Error::TooLarge { .. }
    ));
    assert!(matches!(
        refused(&format!("<website a='{}", "x".repeat(9 << 20))),
        Error::TooLarge { .. }
    ));
    let attributes: String = (0..100_000).map(|at| format!(" a{at}=''")).collect();
    refused(&format!("<website{attributes}>"));
}

#[test]
fn a_file_of_very_many_nodes_is_written_and_read_one_at_a_time() {
    const COUNT: usize = 20_000;
    let header = Header { editor: "e".to_owned(), ..Header::default() };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.open(&Node::new("https://a.example/", "", Operation::Keep)).unwrap();
    for at in 0..COUNT {
        let url = format!("https://a.example/{at}");
        writer.open(&Node::new(&url, "an article", Operation::Add)).unwrap();
        writer.close().unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(&*bytes).unwrap();
    assert_eq!(reader.header(), &header);
    let (mut opened, mut closed) = (0, 0);
    while let Some(event) = reader.next().unwrap() {
        match event {
            Event::Open(node) => {
                assert!(node.node_list.is_empty());
                opened += 1;
            }
            Event::Close => closed += 1,
        }
    }
    assert_eq!((opened, closed), (COUNT + 1, COUNT + 1));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        any::<String>(),
        "(_x0000_|\0|\r\n|\t|&|<|>|]]>|\"|'|\u{ffff}| ){0,6}"
    ]
}

fn any_stored() -> impl Strategy<Value = Content> {
    let facts = (any::<u64>(), any_text(), of(any_text()), of(any::<u16>()), of(any::<i64>()));
    (any::<[u8; 32]>(), facts).prop_map(
        |(sha256, (length, media_type, charset, status, fetched_ms))| {
            let sha256 = ContentDigest::from_bytes(sha256);
            Content::Stored(Box::new(Stored {
                sha256,
                length,
                media_type,
                charset,
                status,
                fetched_ms,
            }))
        },
    )
}

fn any_node() -> impl Strategy<Value = Node> {
    let content = prop_oneof![Just(Content::Unknown), Just(Content::Pending), any_stored()];
    let removal = (select(RemovalReason::ALL), any::<i64>(), any::<u32>()).prop_map(
        |(reason, first_missing_ms, confirmations)| Removal {
            reason,
            first_missing_ms,
            confirmations,
        },
    );
    let what = (
        any_text(),
        any_text(),
        select(Operation::ALL),
        of(select(NodeKind::ALL)),
        of(any::<i64>()),
    );
    let rate = of(any::<u64>());
    let more = (
        (any::<bool>(), rate),
        content,
        of(any::<i64>()),
        of(any_text()),
        of(removal),
        of(any_text()),
    );
    let leaf = (what, more).prop_map(|((url, name, operation, kind, order), more)| {
        let ((is_covered, refresh_rate_s), content, last_modified_ms, etag, removal, previous_url) =
            more;
        let base = Node::new(&format!("u{url}"), &name, operation);
        Node {
            kind,
            order,
            is_covered,
            refresh_rate_s,
            content,
            last_modified_ms,
            etag,
            removal,
            previous_url,
            ..base
        }
    });
    leaf.prop_recursive(5, 24, 5, |inner| {
        (inner.clone(), vec(inner, 0..5)).prop_map(|(node, node_list)| Node { node_list, ..node })
    })
}

fn any_publication() -> impl Strategy<Value = Publication> {
    let digest = || any::<[u8; 32]>().prop_map(ContentDigest::from_bytes);
    let previous =
        (any::<u64>(), digest()).prop_map(|(number, sha256)| Previous { number, sha256 });
    let cut = proptest::collection::btree_map(any::<u32>(), any::<u64>(), 0..4);
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<i64>(), of(any::<i64>()));
    let words = (any_text(), any_text(), select(Stage::ALL), select(Outcome::ALL));
    (numbers, words, of(previous), of(digest()), cut).prop_map(
        |(numbers, words, previous, rules, cut)| {
            let (number, base, oldest, started_ms, completed_ms) = numbers;
            let (epoch, producer, stage, outcome) = words;
            let cut = cut.into_iter().map(|(part, commit)| PartCommit { part, commit }).collect();
            Publication {
                epoch,
                number,
                stage,
                previous,
                base,
                oldest,
                started_ms,
                completed_ms,
                producer,
                rules,
                outcome,
                cut,
            }
        },
    )
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_again(
        editor in any_text(), info in any_text(), publication in of(any_publication()), node in any_node(),
    ) {
        let site = WebSite { header: Header { editor, info, publication }, node };
        let bytes = write(&site, Vec::new()).unwrap();
        prop_assert_eq!(&read(&*bytes).unwrap(), &site);
        prop_assert_eq!(write(&site, Vec::new()).unwrap(), bytes);
    }
}
