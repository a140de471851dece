//! What must hold for addresses, domains, the rules about them, and pages of addresses.

use super::first_line;
use crate::domain::{SuffixList, is_ip};
use crate::facts::{LINKS_MAX, SHORT_TEXT_BYTES_MAX};
use crate::outlinks::domain_of;
use crate::robots::{CRAWL_DELAY_MS_MAX, Robots, RuleKind};
use crate::uri::Uri;
use crate::url::{self, Policy, Resolver, URL_BYTES_MAX};
use crate::webindex;

/// Lines of an input that are asked about, so that an execution stays short.
const QUESTIONS_MAX: usize = 8;

/// The input is a robots.txt; its own values are the agents and URLs asked about.
pub(super) fn robots(input: &[u8]) {
    let robots = Robots::parse(input);
    let lines = lines_of(input);
    let text = String::from_utf8_lossy(input);
    let values =
        || text.split(['\n', '\r']).filter_map(|line| Some(line.split_once(':')?.1.trim()));
    let agents: Vec<&str> = ["driftline", ""].into_iter().chain(values().take(3)).collect();
    let paths = values().take(QUESTIONS_MAX).map(|value| value.replace('*', "x"));
    let paths: Vec<String> =
        paths.chain(["/".to_owned(), "http://h.com/a?b#c".to_owned()]).collect();
    for agent in agents {
        assert!(robots.crawl_delay_ms(agent).is_none_or(|ms| ms <= CRAWL_DELAY_MS_MAX));
        for path in &paths {
            let verdict = robots.verdict(agent, path);
            let Some(rule) = verdict.rule else {
                assert!(verdict.allowed, "a file closes a URL by a line only");
                continue;
            };
            assert_eq!(verdict.allowed, rule.kind == RuleKind::Allow);
            let line = lines[rule.line as usize - 1];
            assert!(String::from_utf8_lossy(line).contains(&*rule.text), "{rule:?}");
        }
    }
    assert!(robots.sitemaps().all(|sitemap| !sitemap.is_empty()));
}

/// The lines of a file, ended by `\n`, `\r` or both.
fn lines_of(input: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = input;
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        lines.push(&rest[..end]);
        rest = rest[end..].strip_prefix(b"\r\n").unwrap_or(&rest[end + 1..]);
    }
    lines.push(rest);
    lines
}

/// The first byte chooses a policy by its bits, the first line is the page's
/// address, each further line a link; one that begins with `<` is its base.
pub(super) fn url(input: &[u8]) {
    let Some((bits, rest)) = input.split_first() else { return };
    let policy = Policy {
        drop_session_ids: bits & 1 != 0,
        drop_broadvision: bits & 2 != 0,
        drop_tracking: bits & 4 != 0,
        sort_query: bits & 8 != 0,
        lower_case_path: bits & 16 != 0,
        keep_fragment: bits & 32 != 0,
    };
    let (page, links) = first_line(rest);
    let (page, links) = (String::from_utf8_lossy(page), String::from_utf8_lossy(links));
    if let Ok(page) = url::canonical(&page, &policy) {
        is_canonical(&page, &policy);
    }
    let Ok(mut resolver) = Resolver::new(&page, &policy) else { return };
    let mut has_base = false;
    for link in links.split('\n').take(QUESTIONS_MAX) {
        if let Some(base) = link.strip_prefix('<') {
            resolver.set_base(base);
            has_base = true;
            continue;
        }
        let answer = resolver.resolve(link).map(str::to_owned);
        assert_eq!(resolver.resolve(link).map(str::to_owned), answer, "asked again");
        if let Ok(answer) = &answer {
            is_canonical(answer, &policy);
        }
        if !has_base && link.len() <= url::HREF_BYTES_MAX {
            let long_way = url::long_way(&page, link, &policy);
            assert_eq!(answer.ok(), long_way.ok(), "{link:?} from {page:?}");
        }
    }
}

/// Panics unless the URL is the one spelling of itself.
pub(super) fn is_canonical(url: &str, policy: &Policy) {
    assert_eq!(url::canonical(url, policy).as_deref(), Ok(url));
    assert!(url.len() <= URL_BYTES_MAX);
    assert!(url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'>'), "{url:?}");
    assert_eq!(format!("{}{}", url::origin_of(url), url::path_of(url)), url);
    assert!(!url::host_of(url).is_empty(), "{url:?}");
}

/// Each line is taken as a URL of Webindex, as a canonical URL,
/// and as a row.
pub(super) fn uri(input: &[u8]) {
    let list = SuffixList::bundled();
    let text = String::from_utf8_lossy(input);
    for line in text.split('\n').take(QUESTIONS_MAX) {
        if let Ok(uri) = Uri::webindex(line, list) {
            there_and_back(&uri);
            assert_eq!(Uri::webindex(&uri.to_url(), list).as_ref(), Ok(&uri));
        }
        if let Ok(url) = url::canonical(line, &Policy::NOTHING) {
            let uri = Uri::canonical(&url, list).expect("every canonical URL has a row");
            there_and_back(&uri);
            assert_eq!(uri.to_url(), url);
        }
        // Not canonical, perhaps: then any answer will do.
        let _ = Uri::canonical(line, list).map(|uri| uri.to_uri());
        if let Ok(uri) = Uri::from_uri(line) {
            assert_eq!(uri.to_uri(), line);
        }
    }
}

fn there_and_back(uri: &Uri) {
    let row = uri.to_uri();
    assert_eq!(row.split('>').count(), 4, "{row:?}");
    assert_eq!(Uri::from_uri(&row).as_ref(), Ok(uri), "{row:?}");
    assert!(uri.host().ends_with(uri.domain()));
}

/// The input is a line of page JSON, and a WAT record behind the URL in its first line.
pub(super) fn webindex(input: &[u8]) {
    let list = SuffixList::bundled();
    let (url, block) = first_line(input);
    let url = String::from_utf8_lossy(url);
    let told = webindex::from_wat(block, &url, Some(&url), list);
    for page in webindex::from_json(input, list).iter().chain(&told) {
        assert_eq!(Uri::webindex(&page.url, list).map(|uri| uri.to_uri()).as_ref(), Ok(&page.uri));
        assert!(page.links.len() <= LINKS_MAX);
        assert!(page.links.is_sorted_by(|one, next| one.uri < next.uri), "{:?}", page.links);
        for link in &page.links {
            there_and_back(&Uri::from_uri(&link.uri).expect("a link leads to a row"));
            assert_ne!(domain_of(&link.uri), domain_of(&page.uri));
        }
        let texts = [&page.crawl_date, &page.server, &page.title].into_iter().flatten();
        for short in texts.chain(page.links.iter().map(|link| &link.anchor)) {
            assert!(short.len() <= SHORT_TEXT_BYTES_MAX && !short.contains('\0'));
        }
        let json = webindex::to_json(page);
        let is_short = json.len() <= webindex::JSON_BYTES_MAX;
        assert!(!is_short || webindex::from_json(json.as_bytes(), list).as_ref() == Some(page));
    }
    if let Some(given) = webindex::given(input) {
        assert!(given.links.len() <= LINKS_MAX);
        let urls = given.links.iter().map(|link| &link.url).chain([&given.url]);
        urls.for_each(|url| is_canonical(url, &Policy::default()));
    }
}

/// The input is a list; behind a line `===` stand the hosts asked about. Without
/// such a line all of them are hosts, and the bundled list answers.
pub(super) fn domain(input: &[u8]) {
    let marker = memchr::memmem::find(input, b"\n===\n");
    let (list, hosts) = match marker {
        None => (None, input),
        Some(at) => match SuffixList::parse(&input[..at]) {
            Ok(list) => (Some(list), &input[at + 5..]),
            Err(_) => return,
        },
    };
    let list = list.as_ref().unwrap_or_else(|| SuffixList::bundled());
    let hosts = String::from_utf8_lossy(hosts);
    for host in hosts.split('\n').take(QUESTIONS_MAX) {
        let group = list.grouping_domain(host);
        assert!(host.ends_with(group));
        if let Some(listed) = list.listed_domain(host) {
            assert_eq!(list.registered_domain(host), Some(listed));
        }
        let Some(domain) = list.registered_domain(host) else { continue };
        assert_eq!(domain, group);
        assert!(host == domain || host.ends_with(&format!(".{domain}")));
        // No canonical host has an address for its end; asked about alone, that has no domain.
        if !is_ip(domain) {
            assert_eq!(list.registered_domain(domain), Some(domain), "of {host:?}");
        }
    }
}
