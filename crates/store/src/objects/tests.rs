//! One conformance suite, for a directory and (when one is given) a real S3 server.

use super::*;
use crate::testing::{environment, skipped};

/// Runs `check` on a fresh directory and on a fresh prefix of the test server.
fn each_store(name: &str, check: impl Fn(&Objects)) {
    let directory = tempfile::tempdir().unwrap();
    check(&Objects::open(&Location::Directory(directory.path().join("made/on/demand"))).unwrap());
    if let Some(location) = test_bucket(name) {
        check(&Objects::open(&location).unwrap());
    }
}

/// The bucket outlives a run, so each test of each run has a prefix of its own.
fn test_bucket(name: &str) -> Option<Location> {
    let Some(endpoint) = environment("DRIFTLINE_TEST_S3") else {
        skipped("S3: DRIFTLINE_TEST_S3 is not set");
        return None;
    };
    let variable = |name: &str| environment(name).unwrap_or_else(|| panic!("{name} is not set"));
    let settings = S3Settings {
        endpoint: Some(endpoint),
        region: None,
        keys: Some((variable("DRIFTLINE_TEST_S3_KEY"), variable("DRIFTLINE_TEST_S3_SECRET"))),
    };
    let bucket = variable("DRIFTLINE_TEST_S3_BUCKET");
    let text = format!("s3://{bucket}/objects-test/{name}-{}", std::process::id());
    Some(Location::parse(&text, &settings).unwrap())
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text).unwrap()
}

#[test]
fn what_was_put_is_read_back_whole_and_in_ranges() {
    each_store("read-back", |objects| {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let at = path("chunks/3/17.facts");
        objects.put(&at, bytes.clone()).unwrap();
        assert_eq!(objects.get(&at).unwrap(), bytes);
        assert_eq!(objects.head(&at).unwrap(), Some(400_000));
        assert_eq!(objects.get_range(&at, 4, 8).unwrap(), bytes[4..12]);
        assert_eq!(objects.get_range(&at, 399_999, 1).unwrap(), bytes[399_999..]);
        assert_eq!(objects.get_range(&at, 5, 0).unwrap(), b"");
        objects.put(&path("chunks/3/18.facts"), Vec::new()).unwrap();
        assert_eq!(objects.get(&path("chunks/3/18.facts")).unwrap(), b"");
    });
}

#[test]
fn an_object_is_never_overwritten() {
    each_store("overwrite", |objects| {
        let at = path("chunks/0/1.facts");
        objects.put(&at, b"first".to_vec()).unwrap();
        for other in ["other", "first!", "firs", ""] {
            let refused = objects.put(&at, other.as_bytes().to_vec()).unwrap_err();
            assert!(matches!(refused, Error::Object { .. }), "{refused}");
        }
        assert_eq!(objects.get(&at).unwrap(), b"first");
        // The answer to the first try may have been lost.
        objects.put(&at, b"first".to_vec()).unwrap();
    });
}

#[test]
fn a_missing_object_is_named_and_a_missing_head_is_none() {
    each_store("missing", |objects| {
        let at = path("chunks/9/9.warc.zst");
        let missing = objects.get(&at).unwrap_err();
        assert!(matches!(missing, Error::Corrupt { .. }), "{missing}");
        assert!(missing.to_string().contains("chunks/9/9.warc.zst"), "{missing}");
        assert!(matches!(objects.get_range(&at, 0, 4), Err(Error::Corrupt { .. })));
        assert_eq!(objects.head(&at).unwrap(), None);
    });
}

#[test]
fn a_range_beyond_the_end_is_corruption() {
    each_store("range", |objects| {
        let at = path("packs/0/1.facts");
        objects.put(&at, b"0123456789".to_vec()).unwrap();
        for (offset, len) in [(0, 11), (9, 2), (10, 1), (1_000, 5)] {
            let error = objects.get_range(&at, offset, len).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{offset}+{len}: {error}");
        }
        assert!(matches!(objects.get_range(&at, u64::MAX, 2), Err(Error::TooLarge { .. })));
    });
}

#[test]
fn deleting_twice_is_fine_and_the_name_is_free_again() {
    each_store("delete", |objects| {
        let at = path("chunks/1/2.warc.zst");
        objects.delete(&at).unwrap();
        objects.put(&at, b"one".to_vec()).unwrap();
        objects.delete(&at).unwrap();
        objects.delete(&at).unwrap();
        assert_eq!(objects.head(&at).unwrap(), None);
        objects.put(&at, b"two".to_vec()).unwrap();
        assert_eq!(objects.get(&at).unwrap(), b"two");
    });
}

#[test]
fn a_listing_goes_through_all_objects_in_order_page_by_page() {
    each_store("list", |objects| {
        let mut names: Vec<_> = (0..25).map(|n| format!("chunks/5/{n}.facts")).collect();
        names.sort();
        for name in names.iter().rev() {
            objects.put(&path(name), name.clone().into_bytes()).unwrap();
        }
        objects.put(&path("chunks/50/1.facts"), b"a neighbour".to_vec()).unwrap();
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = objects.list(&path("chunks/5"), after.as_ref(), 7).unwrap();
            assert!(page.len() <= 7);
            let Some(last) = page.last() else { break };
            after = Some(last.path.clone());
            seen.extend(page);
        }
        let found: Vec<_> = seen.iter().map(|listed| listed.path.to_string()).collect();
        assert_eq!(found, names);
        assert!(seen.iter().all(|listed| listed.bytes == listed.path.as_str().len() as u64));
        assert_eq!(objects.list(&path("absent"), None, 5).unwrap(), []);
    });
}

#[test]
fn what_a_killed_writer_left_is_not_listed_and_goes_with_the_object() {
    let root = tempfile::tempdir().unwrap();
    let objects = Objects::open(&Location::Directory(root.path().to_owned())).unwrap();
    let at = path("chunks/1/2.facts");
    let folder = root.path().join("chunks/1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("2.facts#1"), b"half").unwrap();
    std::fs::write(folder.join("2.facts#2"), b"half").unwrap();
    assert_eq!(objects.list(&path("chunks"), None, 5).unwrap(), []);
    objects.put(&at, b"whole".to_vec()).unwrap();
    assert_eq!(objects.list(&path("chunks"), None, 5).unwrap().len(), 1);
    objects.delete(&at).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_server_that_does_not_answer_is_unavailable() {
    // Port 9 of this machine: nothing listens there.
    let settings = S3Settings {
        endpoint: Some("http://127.0.0.1:9".to_owned()),
        region: None,
        keys: Some(("id".to_owned(), "secret".to_owned())),
    };
    let store = open_bucket_without_retry("crawl", &settings);
    let error = store.get(&path("chunks/1/1.facts")).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(!error.to_string().contains("secret"));
}

/// As [`Objects::open`], but failing at once.
fn open_bucket_without_retry(bucket: &str, settings: &S3Settings) -> Objects {
    let store = bucket_builder(bucket, settings)
        .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
        .build()
        .unwrap();
    let runtime = Arc::new(Runtime::start().unwrap());
    Objects { store: Arc::new(store), runtime, prefix: String::new(), directory: None }
}
