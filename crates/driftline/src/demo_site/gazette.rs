//! `www.harbour-gazette.example`: a newspaper. It says when a page was changed, and
//! compresses what it sends.

use super::written::{DemoHost, DemoPage, Life};

pub const HOST: DemoHost = DemoHost {
    name: "www.harbour-gazette.example",
    short: "gazette",
    title: "The Harbour Gazette",
    menu: &[("/", "Today"), ("/letters", "Letters"), ("/people/", "People"), ("/find", "Find")],
    robots: "User-agent: *\n\
             Disallow: /subscribers/\n",
    sitemap: &[],
    pages: PAGES,
};

const PAGES: &[DemoPage] = &[
    DemoPage::new(
        "/",
        "News from the waterside",
        "<ul>\n<li><a href=\"/2026/wall\">Harbour wall to be raised by a metre</a></li>\n\
         <li><a href=\"/2026/herring\">Herring late, nets empty</a></li>\n\
         <li><a href=\"/2026/light\">Gray Point goes electric</a></li>\n\
         <li><a href=\"/2026/regatta\">Regatta moved to June</a></li>\n</ul>\n\
         <p><a href=\"/classifieds\">Classifieds</a>, \
         <a href=\"/subscribers/crossword\">crossword for subscribers</a>, \
         <a href=\"/news\">all news</a></p>",
    )
    .dated()
    .that(Life::Edited(
        "<ul>\n<li><a href=\"/2026/skarvoy\">An island gets its gauge</a></li>\n\
         <li><a href=\"/2026/ferry-strike\">No ferries until further notice</a></li>\n\
         <li><a href=\"/2026/wall\">Harbour wall to be raised by a metre</a></li>\n\
         <li><a href=\"/2026/herring\">Herring late, nets empty</a></li>\n\
         <li><a href=\"/2026/light\">Gray Point goes electric</a></li>\n</ul>\n\
         <p><a href=\"/classifieds\">Classifieds</a>, \
         <a href=\"/subscribers/crossword\">crossword for subscribers</a>, \
         <a href=\"/news\">all news</a></p>",
    )),
    DemoPage::redirect("/news", 301, "/"),
    DemoPage::new(
        "/2026/wall",
        "Harbour wall to be raised by a metre",
        "<p>The council voted nine to four for the higher wall. Engineers point to the \
         <a href=\"{tides}/methods\">gauges</a>, shopkeepers to the view. Everybody points to \
         <a href=\"{lighthouse}/history/great-storm\">the great storm</a>, which nobody alive has \
         seen.</p>\n<p>Work will take two summers and close the fish quay for one of them.</p>",
    )
    .dated()
    .that(Life::Edited(
        "<p>The council voted nine to four for the higher wall. Engineers point to the \
         <a href=\"{tides}/methods\">gauges</a>, shopkeepers to the view. Everybody points to \
         the great storm, on which more in our letters.</p>\n<p>Work will take two summers and close the fish quay for one of them.</p>",
    )),
    DemoPage::new(
        "/2026/herring",
        "Herring late, nets empty",
        "<p>Skippers returned on Tuesday with ice and little else. The shoals, says the \
         <a href=\"{tides}/harbours/wick\">harbour master of Wick</a>, are waiting for colder water \
         out on the bank. Smokehouses buy from abroad and pay for it.</p>",
    )
    .dated(),
    DemoPage::new(
        "/2026/light",
        "Gray Point goes electric",
        "<p>After a hundred and forty years the last oil lamp of the coast was put out at noon. The \
         new one is the size of a thumb and can be seen as far. Its keeper keeps the house, the \
         garden and <a href=\"{lighthouse}/towers/graypoint\">the visitors' book</a>.</p>",
    )
    .dated(),
    DemoPage::new(
        "/2026/regatta",
        "Regatta moved to June",
        "<p>Because of the works on the wall the regatta begins on the second Saturday of June. Rowers \
         start from Sandhaven. An error crept into an earlier edition: there will be no fireworks.</p>",
    )
    .dated()
    .that(Life::Removed(410)),
    DemoPage::new(
        "/2026/skarvoy",
        "An island gets its gauge",
        "<p>Forty-one islanders and a brass band greeted the instrument that is to tell them what they \
         have always known. <a href=\"{tides}/harbours/skarvoy\">Readings</a> are public. The oldest \
         resident compared the first with her own mark on the boathouse door: two fingers off.</p>",
    )
    .dated()
    .that(Life::Added),
    DemoPage::new(
        "/2026/ferry-strike",
        "No ferries until further notice",
        "<p>Crews walked off at six this morning. Neither <a href=\"{ferries}/\">the company's \
         pages</a> nor its telephone answer. Stranded passengers were put up in the sail loft, where \
         soup is served.</p>",
    )
    .dated()
    .that(Life::Added),
    DemoPage::new(
        "/letters",
        "Letters to the editor",
        "<p>Sir, the gulls have learned to open the new bins. I counted seven lids in the water \
         before breakfast. Yours, a resident of Pier Street.</p>\n\
         <p>Sir, your tide column was an hour out on Sunday; summer time begins for you, too.</p>",
    )
    .dated()
    .that(Life::Edited(
        "<p>Sir, the gulls have learned to open the new bins. I counted seven lids in the water \
         before breakfast. Yours, a resident of Pier Street.</p>\n\
         <p>Sir, before we speak of walls, let us read what was written after \
         <a href=\"{lighthouse}/history/great-storm\">the great storm</a>. The sea came from behind.</p>",
    )),
    DemoPage::new(
        "/people/",
        "Who writes here",
        "<ul>\n<li><a href=\"/people/merrow\">Ada Merrow</a>, fish and weather</li>\n\
         <li><a href=\"/people/editor\">The editor</a></li>\n</ul>",
    )
    .dated(),
    DemoPage::new(
        "/people/merrow",
        "Ada Merrow",
        "<p>Ada Merrow went to sea at sixteen, came back at sixty and has written about it since. Her \
         column appears when the wind allows. She owns a barometer that she does not believe.</p>",
    )
    .dated(),
    DemoPage::new(
        "/people/editor",
        "The editor",
        "<p>The editor prefers not to be named, photographed or telephoned. Complaints are read aloud \
         on Fridays and answered in alphabetical order.</p>",
    )
    .dated()
    .that(Life::Moved("/people/")),
    DemoPage::new(
        "/find",
        "Find an article",
        "<form action=\"/find\"><input name=\"words\"></form>\n\
         <p>Most wanted: <a href=\"/archive/1953\">the flood of 1953</a>.</p>",
    )
    .with_head("<meta name=\"robots\" content=\"noindex\">\n"),
    DemoPage::new(
        "/archive/1953",
        "The flood of 1953",
        "<p>From our edition of the second of February: water stood in the nave of Saint Brendan's to \
         the height of the pulpit. Boats were rowed along the High Street. By Monday it had gone, and \
         with it the savings bank's ledger.</p>",
    )
    .dated(),
    DemoPage::new(
        "/classifieds",
        "Classifieds",
        "<p>For sale: dinghy, clinker built, some rot. Wanted: cat, good with mice and salesmen. \
         Advertisement: <a rel=\"nofollow sponsored\" href=\"{shop}/clearance\">everything must go \
         </a> at the tide shop.</p>",
    )
    .dated(),
    DemoPage::new(
        "/subscribers/crossword",
        "Crossword",
        "<p>One across: it comes twice a day and waits for no one, four letters.</p>",
    )
    .dated(),
];
