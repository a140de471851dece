//! Large sites that mean well lose nothing: shops, forums, archives, wikis, and what
//! looks like a trap at first.

use super::{Answer, BudgetLimits, Outcome, crawl, number, words};

const HOST: &str = "http://www.good-site.org";
const PAGES_MAX: usize = 50_000;

/// The number behind the last `mark` of a URL.
fn after(url: &str, mark: &str) -> usize {
    url.rsplit(mark).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn explore(start: &str, site: impl Fn(&str) -> Answer) -> Outcome {
    let outcome = crawl(&format!("{HOST}{start}"), PAGES_MAX, site);
    println!("{} fetched, {} tallies", outcome.fetched.len(), outcome.budgets.tallies());
    assert!(outcome.closed.is_empty(), "{}", outcome.report());
    outcome
}

/// A list of so many things, twenty to a page, with nothing but a link to the next.
fn list(url: &str, (things, menu): (usize, &str), link: impl Fn(usize) -> String) -> Answer {
    let page = after(url, "=");
    let on_it = page * 20..((page + 1) * 20).min(things);
    let mut links: Vec<String> = on_it.clone().map(link).collect();
    if on_it.end < things {
        links.push(format!("{HOST}/list?page={}", page + 1));
    }
    let names: Vec<String> = on_it.map(|thing| words(&format!("name {thing}"), 3)).collect();
    Answer { text: format!("{menu} {}", names.join(" ")), links }
}

/// Products that name three others, under a menu.
fn shop(url: &str, (products, menu): (usize, &str), words_each: usize) -> Answer {
    if url.contains("/list") {
        return list(url, (products, menu), |product| format!("{HOST}/product/{product}"));
    }
    let product = after(url, "/");
    let text = format!("{menu} {}", words(&format!("product {product}"), words_each));
    let related = (1..4).map(|n| (product * 7 + n * 31) % products);
    Answer { text, links: related.map(|other| format!("{HOST}/product/{other}")).collect() }
}

#[test]
fn a_shop_of_twenty_thousand_products_is_found_whole() {
    const PRODUCTS: usize = 20_000;
    let menu = words("menu", 40);
    let outcome = explore("/list", |url| shop(url, (PRODUCTS, &menu), 10));
    assert_eq!(outcome.count(|url| url.contains("/product/")), PRODUCTS);
}

#[test]
fn a_shop_whose_pages_are_nearly_all_menu_is_found_whole() {
    const PRODUCTS: usize = 3_000;
    for (menu_words, own_words) in [(200, 8), (600, 10)] {
        let menu = words("long menu", menu_words);
        let outcome = explore("/list", |url| shop(url, (PRODUCTS, &menu), own_words));
        assert_eq!(outcome.count(|url| url.contains("/product/")), PRODUCTS);
    }
}

#[test]
fn products_that_say_next_to_nothing_are_found_by_their_list() {
    const PRODUCTS: usize = 3_000;
    let menu = words("long menu", 200);
    let site = |url: &str| shop(url, (PRODUCTS, &menu), 4);
    let outcome = crawl(&format!("{HOST}/list"), PAGES_MAX, site);
    assert_eq!(outcome.count(|url| url.contains("/product/")), PRODUCTS, "{}", outcome.report());
    // They are alike, so they are not trusted to name others; the list is.
    assert!(outcome.closed.contains_key("www.good-site.org/product/# alike"));
}

#[test]
fn a_forum_is_followed_to_its_last_page() {
    const THREADS: usize = 10_000;
    let outcome = explore("/list", |url| match url.split_once("/thread/") {
        None => list(url, (THREADS, "forum"), |thread| format!("{HOST}/thread/{thread}")),
        Some((_, rest)) => {
            // Every fiftieth thread has pages of its own.
            let (thread, page) = rest.split_once("?start=").unwrap_or((rest, "0"));
            let (thread, page): (usize, usize) = (thread.parse().unwrap(), page.parse().unwrap());
            let has_more = thread % 50 == 0 && page < 30;
            let next = has_more.then(|| format!("{HOST}/thread/{thread}?start={}", page + 1));
            let text = format!("{} {}", words("menu", 20), words(&format!("{thread} {page}"), 20));
            Answer { text, links: next.into_iter().collect() }
        }
    });
    assert_eq!(outcome.count(|url| url.contains("/list")), THREADS / 20, "pages of the list");
    assert_eq!(outcome.count(|url| url.contains("/thread/")), THREADS + THREADS / 50 * 30);
}

#[test]
fn an_archive_is_followed_from_day_to_day() {
    const DAYS: usize = 372 * 15;
    let link =
        |day: usize| format!("{HOST}/{}/{}/{}", 2000 + day / 372, day / 31 % 12 + 1, day % 31 + 1);
    let outcome = explore("/2000/1/1", |url| {
        let numbers: Vec<usize> = url.rsplit('/').take(3).map(|n| n.parse().unwrap()).collect();
        let day = (numbers[2] - 2000) * 372 + (numbers[1] - 1) * 31 + numbers[0] - 1;
        let text = format!("{} {}", words("menu", 40), words(&format!("day {day}"), 40));
        let links = (day + 1 < DAYS).then(|| link(day + 1));
        Answer { text, links: links.into_iter().collect() }
    });
    assert_eq!(outcome.fetched.len(), DAYS);
}

#[test]
fn an_archive_of_nothing_but_numbers_is_followed_from_day_to_day() {
    const DAYS: usize = 3_000;
    let outcome = explore("/weather/0", |url| {
        let day = after(url, "/");
        let hour = |hour: usize| number(&format!("{day} {hour}")) % 400;
        let rows: Vec<String> = (0..24).map(|at| format!("{at}:00 {} C", hour(at))).collect();
        let text = format!("{} day {day} {}", words("menu", 40), rows.join(" "));
        let next = (day + 1 < DAYS).then(|| format!("{HOST}/weather/{}", day + 1));
        Answer { text, links: next.into_iter().collect() }
    });
    assert_eq!(outcome.fetched.len(), DAYS);
}

#[test]
fn pictures_with_a_line_of_text_are_found_behind_lists_without_any() {
    const PICTURES: usize = 5_000;
    let outcome = explore("/gallery", |url| {
        if url.contains("/gallery") {
            let page = after(url, "=");
            let on_it = page * 20..page * 20 + 20;
            let mut links: Vec<String> =
                on_it.clone().map(|picture| format!("{HOST}/picture/{picture}")).collect();
            if on_it.end < PICTURES {
                links.push(format!("{HOST}/gallery?page={}", page + 1));
            }
            return Answer { text: words("menu", 60), links };
        }
        let line = words(&format!("picture {}", after(url, "/")), 5);
        Answer { text: format!("{} {line} next", words("menu", 60)), links: Vec::new() }
    });
    assert_eq!(outcome.count(|url| url.contains("/picture/")), PICTURES);
}

#[test]
fn a_wiki_of_more_titles_than_are_counted_is_found_whole() {
    const TITLES: usize = 12_000;
    let title = |number: usize| {
        let name = words(&format!("title {number}"), 2).replace(' ', "_");
        let letters: String =
            number.to_string().bytes().map(|b| char::from(b - b'0' + b'a')).collect();
        format!("{HOST}/wiki/{name}_{letters}")
    };
    let outcome = explore("/wiki/a_a", |url| {
        let letters = url.rsplit('_').next().unwrap();
        let number = letters.bytes().fold(0, |sum, b| sum * 10 + usize::from(b - b'a'));
        let text = format!("{} {}", words("menu", 30), words(&format!("page {number}"), 30));
        let further = [number * 2 + 1, number * 2 + 2].into_iter().filter(|next| *next < TITLES);
        Answer { text, links: further.map(title).collect() }
    });
    assert_eq!(outcome.fetched.len(), TITLES);
    assert!(outcome.budgets.tallies() <= BudgetLimits::default().tallies_max);
}

#[test]
fn pages_told_apart_by_their_parameters_alone_are_found_whole() {
    const PAGES: usize = 5_000;
    let link = |page: usize| {
        format!(
            "{HOST}/index.php?option=content&view=article&Itemid={}&lang=en&id={page}",
            page % 7
        )
    };
    let outcome = explore("/index.php?id=0", |url| {
        let page = after(url, "=");
        let text = format!("{} {}", words("menu", 30), words(&format!("page {page}"), 30));
        let further = (page * 3 + 1..=page * 3 + 3).filter(|next| *next < PAGES);
        Answer { text, links: further.map(link).collect() }
    });
    assert_eq!(outcome.fetched.len(), PAGES);
}

#[test]
fn pages_to_print_are_given_up_and_the_pages_are_not() {
    const PAGES: usize = 3_000;
    let outcome = crawl(&format!("{HOST}/article/0"), PAGES_MAX, |url| {
        let article = after(url.split('?').next().unwrap(), "/");
        let text = format!("{} {}", words("menu", 30), words(&format!("page {article}"), 30));
        let further = (article * 2 + 1..=article * 2 + 2).filter(|next| *next < PAGES);
        let mut links: Vec<String> = further.map(|next| format!("{HOST}/article/{next}")).collect();
        links.push(format!("{HOST}/article/{article}?print=1"));
        Answer { text, links }
    });
    assert_eq!(outcome.count(|url| !url.contains("print")), PAGES, "{}", outcome.report());
    let printed = outcome.count(|url| url.contains("print"));
    assert!((500..1_000).contains(&printed), "{printed} to print");
}

#[test]
fn real_pages_behind_a_page_without_text_are_found() {
    // A frame, a picture, a list that a script fills: nothing to read, good links.
    let outcome = explore("/", |url| {
        let page = after(url, "/page/");
        if !url.contains("/page/") {
            let links = (1..400).map(|page| format!("{HOST}/page/{page}")).collect();
            return Answer { text: String::new(), links };
        }
        let way = words(&format!("way {page}"), 2).replace(' ', "/");
        let links = if page > 0 {
            vec![format!("{HOST}/{way}/"), format!("{HOST}/page/0{page}")]
        } else {
            vec![]
        };
        let text = if number(url).is_multiple_of(3) { String::new() } else { words(url, 40) };
        Answer { text, links }
    });
    assert!(outcome.fetched.len() > 1_000);
}
