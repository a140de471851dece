//! Trees of real files, looked at.

use super::*;

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new() -> Tree {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/sub")).unwrap();
        let tree = Tree { folder };
        tree.write("root/one.txt", "one");
        tree.write("root/sub/two.html", "<title>Two</title><p>two");
        tree
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn files(&self, change: impl FnOnce(&mut FilesSpec)) -> FilesRepository {
        let mut spec = FilesSpec { roots: vec![self.path("root")], ..FilesSpec::default() };
        change(&mut spec);
        FilesRepository::new(spec.check().unwrap(), AllowedRoots::default()).unwrap()
    }
}

fn children(looked: &LookResult) -> Vec<&str> {
    let LookResult::Container { references } = looked else { panic!("it is no directory") };
    references.iter().map(|it| it.docid.rsplit('/').next().unwrap()).collect()
}

fn version(looked: LookResult) -> String {
    let LookResult::Read(read) = looked else { panic!("it was not read") };
    read.version
}

static NOTHING: Data = Data::new();

fn known(version: Option<&str>) -> KnownVersion<'_> {
    KnownVersion { version, data: &NOTHING }
}

#[test]
fn a_directory_leads_to_what_is_in_it_and_a_file_says_what_it_contains() {
    let tree = Tree::new();
    let files = tree.files(|_| ());
    let mut seeds = Vec::new();
    files.seed(None, 5, &mut |seed| seeds.push(seed)).unwrap();
    assert_eq!(seeds, [tree.path("root")]);
    assert_eq!(children(&files.look(&seeds[0], known(None))), ["one.txt", "sub"]);
    let LookResult::Read(read) = files.look(&tree.path("root/sub/two.html"), known(None)) else {
        panic!()
    };
    assert_eq!((read.facts.title.as_str(), read.facts.text.trim()), ("Two", "two"));
    assert!(matches!(files.look(&tree.path("root/three"), known(None)), LookResult::Missing));
}

#[test]
fn a_file_that_is_as_it_was_is_not_read_and_a_hash_sees_through_its_time() {
    let tree = Tree::new();
    let one = tree.path("root/one.txt");
    let by_time = tree.files(|_| ());
    let stamp = version(by_time.look(&one, known(None)));
    assert!(matches!(by_time.look(&one, known(Some(&stamp))), LookResult::Same));
    let by_hash = tree.files(|spec| spec.by = By::Hash);
    let hash = version(by_hash.look(&one, known(None)));
    let file = std::fs::File::options().write(true).open(&one).unwrap();
    file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(1_000)).unwrap();
    assert_ne!(version(by_time.look(&one, known(Some(&stamp)))), stamp, "its time has changed");
    assert!(
        matches!(by_hash.look(&one, known(Some(&hash))), LookResult::Same),
        "its bytes have not"
    );
    tree.write("root/one.txt", "won");
    assert_ne!(version(by_hash.look(&one, known(Some(&hash)))), hash);
}

#[test]
fn what_is_left_out_is_neither_named_nor_read() {
    let tree = Tree::new();
    tree.write("outside.txt", "secret");
    std::os::unix::fs::symlink(tree.path("outside.txt"), tree.path("root/link")).unwrap();
    std::os::unix::fs::symlink(tree.path("root"), tree.path("root/sub/up")).unwrap();
    let root = tree.path("root");
    for follow_links in [false, true] {
        let files = tree.files(|spec| spec.follow_links = follow_links);
        assert_eq!(children(&files.look(&root, known(None))), ["one.txt", "sub"]);
        let sub = files.look(&tree.path("root/sub"), known(None));
        assert_eq!(children(&sub), ["two.html"], "a link to where it is leads nowhere");
        assert!(files.unwanted(&tree.path("outside.txt")).is_some());
    }
    let files = tree.files(|spec| spec.exclude = vec!["/sub$".into()]);
    assert_eq!(children(&files.look(&root, known(None))), ["one.txt"]);
    let files = tree.files(|spec| spec.include = vec![r"\.html$".into()]);
    assert!(matches!(files.look(&tree.path("root/one.txt"), known(None)), LookResult::Missing));
}

#[test]
fn a_file_beyond_the_limit_is_known_by_its_name_only() {
    let tree = Tree::new();
    let files = tree.files(|spec| spec.max_bytes = 2);
    let LookResult::Read(read) = files.look(&tree.path("root/one.txt"), known(None)) else {
        panic!()
    };
    assert_eq!((read.facts.title.as_str(), read.body.len()), ("one.txt", 0));
}

#[test]
fn a_root_that_is_missing_or_empty_is_trouble_and_no_directory_without_files() {
    let tree = Tree::new();
    let files = tree.files(|_| ());
    let (root, one) = (tree.path("root"), tree.path("root/one.txt"));
    assert!(files.check_available(true).is_ok());
    let is_in_trouble = || {
        let looked = files.look(&one, known(None));
        matches!(looked, LookResult::Trouble { code: "repository", passes: true, .. })
    };
    std::fs::rename(&root, tree.path("away")).unwrap();
    let refused = files.check_available(false).unwrap_err();
    assert!(refused.passes() && refused.to_string().contains(&root), "{refused}");
    assert!(is_in_trouble());
    std::fs::create_dir(&root).unwrap();
    assert!(files.check_available(false).is_ok(), "a new job may begin with nothing");
    assert!(files.check_available(true).unwrap_err().passes());
    assert!(is_in_trouble());
    std::fs::write(tree.path("root/two.txt"), "two").unwrap();
    assert!(matches!(files.look(&one, known(None)), LookResult::Missing), "it is gone itself");
}

#[test]
fn a_job_reads_only_under_the_directories_that_its_connection_allows() {
    let tree = Tree::new();
    std::fs::create_dir(tree.folder.path().join("other")).unwrap();
    tree.write("other/secret.txt", "a secret");
    // A name under what is allowed that leads elsewhere.
    std::os::unix::fs::symlink(tree.path("other"), tree.path("root/way")).unwrap();
    let made = |roots: &[String]| {
        let config = serde_json::json!({ "roots": [tree.path("root")] }).to_string();
        let spec = serde_json::json!({ "roots": roots, "follow_links": true }).to_string();
        super::super::repository(&config, &spec)
    };
    for outside in ["other", "root/../other", "roots", ""] {
        let refused = made(&[tree.path("root"), tree.path(outside)]).err().unwrap_or_default();
        assert!(refused.contains("not under a directory"), "{outside}: {refused}");
    }
    let files = made(&[tree.path("root/sub"), tree.path("root/way")]).unwrap();
    assert_eq!(children(&files.look(&tree.path("root/sub"), known(None))), ["two.html"]);
    for name in ["root/way", "root/way/secret.txt"] {
        let LookResult::Trouble { code, passes, .. } = files.look(&tree.path(name), known(None))
        else {
            panic!("{name} was read")
        };
        assert_eq!((code, passes), ("outside-roots", false), "{name}");
    }
}
