//! Hash names by the seed's example, path names by what file systems do.

use proptest::prelude::*;

use super::*;
use crate::fuzzing::mirror::{name_is_safe, names_do_not_meet};

/// URLs and names as the seed has them. All six are the MD5 of the URL's bytes as written.
const SEED: [(&str, &str); 6] = [
    ("http://www.harbin.gov.cn/", "e31258c2c3dd45d4256a577fc7d5b55a"),
    ("http://www.harbin.gov.cn/zwxxgk/zfgg/zfgg2012.htm#", "2ab18cb69487ddc2cea2417be9ff0865"),
    ("http://www.harbin.gov.cn/zwxxgk/zfgg/zfgg2012.htm", "4edf9336373c858be50c0f35cdd5a2a5"),
    (
        "http://www.harbin.gov.cn/info/news/index/detail/318904.htm",
        "5b56522727af88520ede8aa93bb4f918",
    ),
    (
        "http://www.harbin.gov.cn/info/news/index/detail/318823.htm",
        "54e506a6218b1398caebeaa679857377",
    ),
    ("", "d41d8cd98f00b204e9800998ecf8427e"),
];

#[test]
fn hash_names_are_those_of_the_seeds_example_with_the_fragment() {
    for (url, name) in SEED {
        let hash_name = HashName::of(url);
        assert_eq!(hash_name.to_string(), name, "{url}");
        assert_eq!(HashName::parse(name), Some(hash_name));
        assert_eq!(hash_name.path(".xml"), format!("{}/{name}.xml", &name[..2]));
        assert_eq!(hash_name.directory(), name[..2]);
    }
}

#[test]
fn what_is_no_hash_name_is_refused() {
    let capitals = "E31258C2C3DD45D4256A577FC7D5B55A";
    let signed = "+31258c2c3dd45d4256a577fc7d5b55a";
    for text in ["", "e3", "../../../../../../../../etc/passwd", capitals, signed] {
        assert_eq!(HashName::parse(text), None, "{text}");
    }
    assert_eq!(HashName::parse(&"0".repeat(33)), None);
}

#[test]
fn ordinary_urls_keep_their_paths() {
    for (url, name) in [
        ("https://example.com/", "example.com/index.html"),
        ("https://example.com/a/b.html", "example.com/a/b.html"),
        ("https://example.com/a/b.htm", "example.com/a/b.htm"),
        ("https://example.com/a/", "example.com/a/index.html"),
        ("https://example.com/a", "example.com/a~.html"),
        ("https://example.com/3.11/library/os.path.html", "example.com/3.11/library/os.path.html"),
        ("http://example.com:8080/x.php", "example.com+http+8080/x.php~.html"),
    ] {
        assert_eq!(path_name(url, "html"), name);
    }
    assert_eq!(path_name("https://example.com/paper.pdf", "pdf"), "example.com/paper.pdf");
    assert_eq!(path_name("https://example.com/a.jpeg", "jpg"), "example.com/a.jpeg");
    assert_eq!(path_name("https://example.com/a", "../x"), "example.com/a~.bin");
}

#[test]
fn what_is_not_plain_can_be_read_and_has_a_hash() {
    for (url, begins, ends) in [
        ("https://example.com/a.php?id=5&lang=zh", "example.com/a.php_id=5_lang=zh~", ".html"),
        ("https://example.com/%E5%93%88/Main.html", "example.com/哈~", ".html"),
        ("https://example.com/Main.html", "example.com/Main~", ".html"),
        ("https://example.com/a.html#", "example.com/a~", ".html"),
        ("https://example.com/index.html", "example.com/index~", ".html"),
        ("https://example.com/con.html", "example.com/_con~", ".html"),
        ("https://example.com/.htaccess", "example.com/_.htaccess~", ".html"),
        ("https://example.com/a.html/b.html", "example.com/a.html~", "/b.html"),
        ("https://example.com/COM¹", "example.com/_COM¹~", ".html"),
        ("https://example.com/a%00b%0A.html", "example.com/a_b_~", ".html"),
        ("https://example.com/a. ", "example.com/a.~", ".html"),
        ("https://[::1]/a.html", "___1_~", "/a.html"),
        ("c:\\windows\\system.ini", "other~/c__windows_system.ini~", ".html"),
        ("file:///etc/passwd", "other~/file____etc_passwd~", ".html"),
    ] {
        let name = path_name(url, "html");
        assert!(name.starts_with(begins) && name.ends_with(ends), "{url}: {name}");
        name_is_safe(&name).unwrap();
    }
}

#[test]
fn urls_that_file_systems_could_mix_up_have_different_names() {
    let urls = [
        "https://a.example/x",
        "https://a.example/X",
        "https://a.example/x/",
        "https://a.example/x.html",
        "https://a.example/x.htm",
        "https://a.example/x.html/",
        "https://a.example/x.html/y",
        "https://a.example/x~.html",
        "https://a.example/x/index.html",
        "https://a.example/x?",
        "https://a.example/x#",
        "https://a.example//x",
        "https://a.example/%78",
        "https://a.example/b/../x",
        "https://a.example/%2e%2e/x",
        "https://a.example\\x",
        "https://a.example:443/x",
        "https://A.example/x",
        "http://a.example/x",
        "https://u@a.example/x",
        "https://a.example./x",
        "smb://a.example",
        "smb://a.example/",
        "https://a.example+http/x",
    ];
    for (at, one) in urls.iter().enumerate() {
        for other in &urls[..at] {
            names_do_not_meet(one, other).unwrap();
        }
    }
}

#[test]
fn long_urls_are_cut_and_stay_apart() {
    let long = |c: char, count: usize| format!("https://a.example/{}", c.to_string().repeat(count));
    let (fits, over) = (long('a', COMPONENT_BYTES_MAX - "~.html".len()), long('a', 195));
    assert_eq!(path_name(&fits, "html").len(), "a.example/".len() + COMPONENT_BYTES_MAX);
    assert!(!path_name(&fits, "html").contains("~.html/") && path_name(&over, "html").len() < 220);
    let deep = format!("https://a.example/{}end.html", "abc/".repeat(300));
    let deeper = format!("https://a.example/{}end.html", "abc/".repeat(301));
    assert!(path_name(&deep, "html").starts_with("deep~/end~"), "{}", path_name(&deep, "html"));
    for (one, other) in [(&fits, &over), (&deep, &deeper)] {
        name_is_safe(&path_name(one, "html")).unwrap();
        names_do_not_meet(one, other).unwrap();
    }
}

#[test]
fn references_between_files_are_relative_and_escaped() {
    for (from, to, reference) in [
        ("a/b.html", "a/c.html", "c.html"),
        ("a/b.html", "a/b.html", "b.html"),
        ("a/b/c.html", "a/d/e.html", "../d/e.html"),
        ("a.html", "x/y.html", "x/y.html"),
        ("x/y.html", "a.html", "../a.html"),
        ("3f/aa.html", "assets/00/bb.css", "../assets/00/bb.css"),
        ("a/b.html", "a/哈#?%.html", "%E5%93%88%23%3F%25.html"),
        ("a/b.html", "a/b.html/c", "b.html/c"),
    ] {
        assert_eq!(relative_reference(from, to), reference, "{from} to {to}");
    }
}

proptest! {
    #[test]
    fn any_text_has_a_safe_name(url in any::<String>(), extension in any::<String>()) {
        prop_assert_eq!(name_is_safe(&path_name(&url, &extension)), Ok(()));
        let url = format!("https://a.example/{url}");
        prop_assert_eq!(name_is_safe(&path_name(&url, &extension)), Ok(()));
        prop_assert_eq!(path_name(&url, "html"), path_name(&url, "html"));
    }

    #[test]
    fn different_urls_never_meet(
        one in "http(s)?://a(:1)?/([aA.~/]|%2e|%41|index|con|[.]html|[?#]){0,8}",
        other in "http(s)?://a(:1)?/([aA.~/]|%2e|%41|index|con|[.]html|[?#]){0,8}",
    ) {
        if one != other {
            prop_assert_eq!(names_do_not_meet(&one, &other), Ok(()));
        }
    }

    #[test]
    fn a_reference_leads_from_file_to_file(
        from in "[a-c]{1,2}(/[a-c哈 ?#%~]{1,3}){1,4}", to in "[a-c]{1,2}(/[a-c哈 ?#%~]{1,3}){1,4}",
    ) {
        let base = |path: &str| {
            let mut url = url::Url::parse("http://mirror.example/").unwrap();
            url.path_segments_mut().unwrap().extend(path.split('/'));
            url
        };
        let reference = relative_reference(&from, &to);
        let reached = base(&from).join(&reference).unwrap();
        let decode = |url: &url::Url| {
            percent_encoding::percent_decode_str(url.path()).decode_utf8().unwrap().into_owned()
        };
        prop_assert_eq!(decode(&reached), format!("/{to}"));
        prop_assert!(reached.query().is_none() && reached.fragment().is_none());
    }
}
