//! `ferries.example`: a company whose server fails in the second state.

use super::written::{DemoHost, DemoPage};

pub const HOST: DemoHost = DemoHost {
    name: "ferries.example",
    short: "ferries",
    title: "Northern Ferries",
    menu: &[("/", "Ferries"), ("/timetable", "Timetable"), ("/piers/", "Piers")],
    robots: "User-agent: *\nDisallow: /staff/\n",
    sitemap: &[],
    pages: PAGES,
};

const PAGES: &[DemoPage] = &[
    DemoPage::new(
        "/",
        "Across the water",
        "<p>Three ships, seven piers, one whistle. We sail when <a href=\"{tides}/tables/\">the tide \
         </a> lets us and tell you so in <a href=\"/timetable\">the timetable</a>.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/timetable",
        "Timetable",
        "<table>\n<tr><th>From</th><th>To</th><th>Leaves</th></tr>\n\
         <tr><td>Ness</td><td>Sandhaven</td><td>two hours before high water</td></tr>\n\
         <tr><td>Sandhaven</td><td>Wick</td><td>at high water</td></tr>\n\
         <tr><td>Wick</td><td>Ness</td><td>when the pub closes</td></tr>\n</table>\n\
         <p><a href=\"/fares\">Fares</a></p>",
    )
    .tagged(),
    DemoPage::new(
        "/fares",
        "Fares",
        "<p>Grown-ups four, children two, sheep one and a half. Bicycles travel free if they are \
         lifted over the rail by their owners, <a href=\"/staff/\">staff</a> at any hour.</p>",
    ),
    DemoPage::new(
        "/piers/",
        "Our piers",
        "<ul>\n<li><a href=\"ness\">Ness</a></li>\n<li><a href=\"sandhaven\">Sandhaven</a></li>\n\
         <li><a href=\"wick\">Wick</a></li>\n</ul>",
    )
    .dated(),
    DemoPage::new(
        "/piers/ness",
        "Pier of Ness",
        "<p>Two ramps, the upper for high water. Tickets from the hatch beside the lifeboat house; \
         knock loudly. A waiting room was promised in 1974.</p>",
    )
    .dated(),
    DemoPage::new(
        "/piers/sandhaven",
        "Pier of Sandhaven",
        "<p>Boarding by plank. At the lowest waters the ship anchors in the roads and passengers are \
         carried out in the cart, which is older than the ship.</p>",
    )
    .dated(),
    DemoPage::new(
        "/piers/wick",
        "Pier of Wick",
        "<p>Between the fish market and the ice house; follow the smell, then the queue. Dogs must wear \
         a muzzle near the crates.</p>",
    )
    .dated(),
    DemoPage::new("/staff/", "Staff", "<p>The rota hangs in the mess.</p>"),
];
