//! Every special range with its first, last and neighbouring address; names and ports.

use super::*;

fn public(url: &str) -> Result<(), Reason> {
    Guard::default().url(url).map(|_| ())
}

fn at(address: IpAddr) -> Result<(), Reason> {
    Guard::default().address(SocketAddr::new(address, 80))
}

#[test]
fn every_special_range_is_refused_from_its_first_address_to_its_last_and_not_beyond() {
    // The first and the last address, written out and not computed from the table.
    let ranges = [
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("169.254.0.0", "169.254.255.255"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "255.255.255.255"),
    ];
    for (first, last) in ranges {
        let [first, last]: [Ipv4Addr; 2] = [first, last].map(|text| text.parse().unwrap());
        for inside in [first, last] {
            let refused = at(IpAddr::V4(inside));
            assert!(matches!(refused, Err(Reason::Address(_))), "{inside}: {refused:?}");
        }
        let before = first.to_bits().checked_sub(1);
        let after = last.to_bits().checked_add(1);
        for outside in [before, after].into_iter().flatten() {
            let outside = Ipv4Addr::from_bits(outside);
            assert_eq!(at(IpAddr::V4(outside)), Ok(()), "{outside}");
        }
    }
}

#[test]
fn every_special_range_of_ipv6_is_refused_from_its_first_address_to_its_last_and_not_beyond() {
    const ONES: &str = "ffff:ffff:ffff:ffff";
    let ranges = [
        ("::".to_owned(), "::1".to_owned()),
        ("64:ff9b:1::".to_owned(), format!("64:ff9b:1:ffff:{ONES}")),
        ("100::".to_owned(), format!("100:0:0:1:{ONES}")),
        ("2001:1::".to_owned(), format!("2001:1ff:ffff:ffff:{ONES}")),
        ("2001:db8::".to_owned(), format!("2001:db8:ffff:ffff:{ONES}")),
        ("3fff::".to_owned(), format!("3fff:fff:ffff:ffff:{ONES}")),
        ("5f00::".to_owned(), format!("5f00:ffff:ffff:ffff:{ONES}")),
        ("fc00::".to_owned(), format!("fdff:ffff:ffff:ffff:{ONES}")),
        ("fe80::".to_owned(), format!("ffff:ffff:ffff:ffff:{ONES}")),
    ];
    for (first, last) in &ranges {
        let [first, last]: [Ipv6Addr; 2] = [first, last].map(|text| text.parse().unwrap());
        for inside in [first, last] {
            let refused = at(IpAddr::V6(inside));
            assert!(matches!(refused, Err(Reason::Address(_))), "{inside}: {refused:?}");
        }
        let before = first.to_bits().checked_sub(1).map(Ipv6Addr::from_bits);
        let after = last.to_bits().checked_add(1).map(Ipv6Addr::from_bits);
        for outside in [before, after].into_iter().flatten() {
            // Beside ::1 is IPv4 in an old dress (0.0.0.2), before 2001:1:: is Teredo.
            let decided_by_ipv4 = unwrap(IpAddr::V6(outside)).0.is_ipv4();
            let is_global = outside.segments()[0] & 0xe000 == 0x2000;
            let is_reached = is_global && !decided_by_ipv4;
            assert_eq!(at(IpAddr::V6(outside)).is_ok(), is_reached, "{outside}");
        }
    }
}

#[test]
fn what_is_not_given_out_for_the_public_internet_is_refused_until_it_is_allowed() {
    let mut allowing = Guard { allow: vec!["4000::/3".parse().unwrap()], ..Guard::default() };
    for text in ["200::1", "1000::1", "1fff:ffff::1", "4000::1", "8000::1", "e000::1", "fbff::1"] {
        let address: IpAddr = text.parse().unwrap();
        assert!(matches!(at(address), Err(Reason::Address(_))), "{text}");
        let reached = allowing.address(SocketAddr::new(address, 80)).is_ok();
        assert_eq!(reached, text == "4000::1", "{text}");
    }
    allowing.allow_private = true;
    assert_eq!(allowing.address("[8000::1]:80".parse().unwrap()), Ok(()));
    for text in ["2000::1", "2606:4700::1111", "3ffe::1"] {
        assert_eq!(at(text.parse().unwrap()), Ok(()), "{text}");
    }
}

#[test]
fn ipv4_inside_ipv6_is_unwrapped_and_judged_as_ipv4() {
    let refused = [
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::127.0.0.1",
        "::0.0.0.2",
        "64:ff9b::a9fe:a9fe",
        "::ffff:0:127.0.0.1",
        "::ffff:0:a9fe:a9fe",
        "64:ff9b::10.1.2.3",
        "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::",
        "2002:c0a8:101::1",
        // Teredo with a private server, and with a private client (inverted).
        "2001:0:a00:1::f7f7:f7f7",
        "2001:0:808:808::80ff:fffe",
    ];
    for text in refused {
        assert!(at(text.parse().unwrap()).is_err(), "{text}");
        assert!(public(&format!("http://[{text}]/")).is_err(), "{text}");
    }
    let allowed = [
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "::ffff:0:8.8.8.8",
        "2002:808:808::1",
        "2001:0:808:808::f7f7:f7f7",
        "2606:4700::1111",
    ];
    for text in allowed {
        assert_eq!(at(text.parse().unwrap()), Ok(()), "{text}");
    }
}

#[test]
fn odd_spellings_of_loopback_are_seen_through_once_they_are_canonical() {
    let odd = [
        "http://0x7f.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://１２７.0.0.1/",
        "http://%31%32%37.0.0.1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://0/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::127.0.0.1]/",
    ];
    for url in odd {
        let canonical = page::url::canonical(url, &page::url::Policy::NOTHING).unwrap();
        let refused = public(&canonical);
        assert!(matches!(refused, Err(Reason::Address(_))), "{url} {canonical}: {refused:?}");
    }
}

#[test]
fn names_of_this_computer_and_of_metadata_services_are_refused() {
    for host in ["localhost", "localhost.", "a.localhost", "a.b.localhost.", "LOCALHOST"] {
        assert_eq!(public(&format!("http://{host}/")), Err(Reason::Localhost), "{host}");
    }
    let private = Guard { allow_private: true, ..Guard::default() };
    assert!(private.url("http://localhost/").is_ok());
    for host in targets::METADATA_NAMES {
        assert_eq!(private.url(&format!("http://{host}/")), Err(Reason::Metadata));
        assert_eq!(private.url(&format!("http://{host}./")), Err(Reason::Metadata));
    }
    for host in ["localhost.example.com", "notlocalhost", "metadata.example.com"] {
        assert_eq!(public(&format!("http://{host}/")), Ok(()), "{host}");
    }
}

#[test]
fn metadata_addresses_stay_closed_when_private_ranges_are_open() {
    let mut guard = Guard { allow_private: true, ..Guard::default() };
    for address in targets::METADATA {
        assert_eq!(guard.address(SocketAddr::new(address, 80)), Err(Reason::Metadata));
    }
    assert!(guard.url("http://[::ffff:169.254.169.254]/").is_err());
    guard.allow.push("169.254.169.254".parse().unwrap());
    assert!(guard.url("http://169.254.169.254/").is_ok());
}

#[test]
fn only_the_ports_of_the_web_are_open() {
    // The Fetch standard's list of bad ports, all of it.
    let bad = [
        0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95,
        101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179,
        389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601,
        636, 989, 990, 993, 995, 1_719, 1_720, 1_723, 2_049, 3_659, 4_045, 4_190, 5_060, 5_061,
        6_000, 6_566, 6_665, 6_666, 6_667, 6_668, 6_669, 6_679, 6_697, 10_080,
    ];
    for port in bad {
        assert_eq!(public(&format!("http://a.com:{port}/")), Err(Reason::Port(port)));
    }
    for port in [80, 443, 1_024, 8_080, 8_443, 65_535] {
        assert_eq!(public(&format!("http://a.com:{port}/")), Ok(()));
    }
    for port in 1..1_024 {
        assert_eq!(public(&format!("http://a.com:{port}/")).is_ok(), port == 80 || port == 443);
    }
    let guard = Guard { allow_ports: vec![81, 6_000], ..Guard::default() };
    assert!(guard.url("http://a.com:81/").is_ok() && guard.url("http://a.com:6000/").is_ok());
}

#[test]
fn only_http_and_https_with_a_host_are_asked() {
    for url in [
        "file:///etc/passwd",
        "ftp://a.com/",
        "gopher://a.com/",
        "data:text/html,x",
        "javascript:alert(1)",
        "",
        "http://",
        "http:///x",
        "//a.com/",
        "http://u@a.com/",
        "http://u:p@a.com/",
        "http://u:80@a.com/",
        "http://a.com:99999/",
        "http://a.com:/",
    ] {
        assert_eq!(public(url), Err(Reason::Url), "{url}");
    }
    let long = format!("http://a.com/{}", "x".repeat(page::url::URL_BYTES_MAX));
    assert_eq!(public(&long), Err(Reason::Url));
}

#[test]
fn our_own_addresses_are_refused_whatever_is_allowed() {
    let open = |own: &str| Guard {
        allow_private: true,
        allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        allow_ports: vec![],
        own: vec![own.parse().unwrap()],
    };
    let refused = |own: &str, url: &str| open(own).url(url) == Err(Reason::OwnAddress);
    for host in ["127.0.0.1", "127.9.9.9", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]"] {
        assert!(refused("127.0.0.1:8080", &format!("http://{host}:8080/")), "{host}");
        assert!(!refused("127.0.0.1:8080", &format!("http://{host}:8081/")), "{host}");
    }
    for host in ["127.0.0.1", "10.0.0.7", "[::1]", "[fe80::1]", "192.168.1.1"] {
        assert!(refused("0.0.0.0:8080", &format!("http://{host}:8080/")), "{host}");
        assert!(refused("[::]:8080", &format!("http://{host}:8080/")), "{host}");
    }
    assert!(refused("93.184.216.34:443", "https://93.184.216.34/"));
    assert!(!refused("10.0.0.7:5432", "http://10.0.0.8:5432/"));
    assert!(!refused("0.0.0.0:8080", "http://93.184.216.34:8080/"));
}

#[test]
fn an_allowed_range_opens_itself_and_nothing_else() {
    let guard = Guard { allow: vec!["10.1.0.0/16".parse().unwrap()], ..Guard::default() };
    assert!(guard.url("http://10.1.2.3/").is_ok());
    assert!(guard.url("http://[::ffff:10.1.2.3]/").is_ok());
    assert!(guard.url("http://10.2.0.0/").is_err());
    assert!(guard.url("http://127.0.0.1/").is_err());
}

#[test]
fn ranges_are_read_from_text_or_refused() {
    for good in ["10.0.0.0/8", "0.0.0.0/0", "1.2.3.4", "::/0", "fd00::/8", "::1/128"] {
        assert!(good.parse::<Cidr>().is_ok(), "{good}");
    }
    for bad in ["", "10.0.0.0/33", "::/129", "10/8", "a/8", "10.0.0.0/", "10.0.0.0/-1", "/8"] {
        assert!(bad.parse::<Cidr>().is_err(), "{bad}");
    }
    let all: Cidr = "0.0.0.0/0".parse().unwrap();
    assert!(all.contains("255.255.255.255".parse().unwrap()));
    assert!(!all.contains("::1".parse().unwrap()));
}
