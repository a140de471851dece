//! Pages of sites without rules.

use super::*;

const URL: &str = "https://a.example/news/2024/post-1.html";

fn urls(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.url.trim_start_matches("https://a.example")).collect()
}

#[test]
fn breadcrumbs_of_json_ld_count_first_in_their_order() {
    let html = r#"<script type="application/ld+json">{"@graph":[{"@type":["NewsArticle"]},
        {"@type":"BreadcrumbList","itemListElement":[
        {"@type":"ListItem","position":2,"name":"News &amp; more","item":"/news/"},
        {"@type":"ListItem","position":1,"item":{"@id":"https://a.example/","name":"Home"}},
        {"@type":"ListItem","position":3,"name":"This","item":"https://a.example/news/2024/post-1.html"}]}]}
        </script><nav class="breadcrumb"><a href="/no">No</a></nav>"#;
    let derived = derive(URL, html);
    assert_eq!(urls(&derived.breadcrumbs), ["/", "/news/"]);
    assert_eq!(derived.column().map(|it| it.name.as_str()), Some("News & more"));
    assert_eq!(derived.role, Role::Article);
}

#[test]
fn marked_breadcrumbs_count_next_and_the_path_last() {
    for html in [
        "<ol class='Breadcrumbs-list'><li><a href='/'>Home</a><li><a href='/n'>N</a></ol>",
        "<nav aria-label=Breadcrumb><a href='/'>Home</a> <a href='/n'>N</a> This</nav>",
        "<div itemscope itemtype='https://schema.org/BreadcrumbList'><a href=/>H</a><a href=/n>N</a></div>",
        "<p id=breadcrumb><a href=/>H</a><a href=/n>N</a><a href=''>This</a><a href='#x'>This</a></p>",
    ] {
        assert_eq!(urls(&derive(URL, html).breadcrumbs), ["/", "/n"], "{html}");
    }
    assert_eq!(
        urls(&derive(URL, "<script type='application/ld+json'>{broken</script>").breadcrumbs),
        ["/", "/news/", "/news/2024/"]
    );
    assert_eq!(urls(&derive("https://a.example/", "").breadcrumbs), [""; 0]);
}

#[test]
fn what_a_page_is_follows_from_what_it_says_and_its_url() {
    for (path, html, role) in [
        ("/", "<article>x</article>", Role::Column),
        ("/news/", "", Role::List),
        ("/news/index.html", "<article>1</article><article>2</article>", Role::List),
        ("/news/", "<article>the one</article>", Role::Article),
        ("/news/", "<meta property='og:type' content=article>", Role::Article),
        ("/news/post", "", Role::Article),
        ("/?p=1", "", Role::List),
    ] {
        assert_eq!(derive(&format!("https://a.example{path}"), html).role, role, "{path} {html}");
    }
}

#[test]
fn the_navigation_is_that_of_the_site_and_bounded() {
    let html = "<nav><a href=/a>A</a><a href=/a>again</a><a href=//b.example/>B</a></nav>\
        <div role=navigation><a href=c>C</a><a href='mailto:x'>m</a></div>";
    let derived = derive(URL, html);
    assert_eq!(urls(&derived.navigation), ["/a", "/news/2024/c"]);
    let links = |tag: &str, count: usize| -> String {
        let links: String = (0..count).map(|at| format!("<a href=/{at}>x</a>")).collect();
        format!("<{tag}>{links}</{tag}>")
    };
    assert_eq!(derive(URL, &links("nav", NAVIGATION_MAX + 1)).navigation.len(), NAVIGATION_MAX);
    let many = links("nav class=breadcrumb", BREADCRUMBS_MAX + 1);
    assert_eq!(derive(URL, &many).breadcrumbs.len(), BREADCRUMBS_MAX);
    let deep = format!("https://a.example/{}", "a/".repeat(1_000));
    assert_eq!(derive(&deep, "").breadcrumbs.len(), BREADCRUMBS_MAX);
}
