//! `www.tides.example`: an institute that reads gauges. It tags its pages.

use super::written::{DemoHost, DemoPage, Life};

pub const HOST: DemoHost = DemoHost {
    name: "www.tides.example",
    short: "tides",
    title: "Tides of the Northern Harbours",
    menu: &[
        ("/", "Start"),
        ("/harbours/", "Harbours"),
        ("/tables/", "Tables"),
        ("/methods", "Methods"),
    ],
    robots: "User-agent: *\n\
             Disallow: /drafts/\n\
             Allow: /drafts/published\n\
             \n\
             Sitemap: {tides}/sitemap.xml\n",
    sitemap: &["/", "/harbours/", "/harbours/ness", "/harbours/skarvoy", "/tables/", "/methods"],
    pages: PAGES,
};

const PAGES: &[DemoPage] = &[
    DemoPage::new(
        "/",
        "When the water comes and goes",
        "<p>High water follows the moon, but every harbour keeps its own time. We have read the gauges \
         of this coast since 1871 and publish what they say.</p>\n\
         <p>New here? Begin with <a href=\"/methods\">how we measure</a>, look up \
         <a href=\"/today\">the tables in force</a>, or read about us in the \
         <a href=\"{gazette}/\">Harbour Gazette</a>.</p>\n\
         <p>Work in progress: <a href=\"/drafts/new-gauge\">a gauge for the outer mole</a>, and the \
         <a href=\"/drafts/published\">plan that was approved</a>.</p>",
    )
    .tagged()
    .that(Life::Edited(
        "<p>High water follows the moon, but every harbour keeps its own time. We have read the gauges \
         of this coast since 1871 and publish what they say.</p>\n\
         <p><strong>New: the gauge at <a href=\"/harbours/skarvoy\">Skarvøy</a> has joined the \
         network.</strong></p>\n\
         <p>New here? Begin with <a href=\"/methods\">how we measure</a>, look up \
         <a href=\"/today\">the tables in force</a>, or read about us in the \
         <a href=\"{gazette}/\">Harbour Gazette</a>.</p>\n\
         <p>Work in progress: <a href=\"/drafts/new-gauge\">a gauge for the outer mole</a>, and the \
         <a href=\"/drafts/published\">plan that was approved</a>.</p>",
    )),
    DemoPage::new(
        "/harbours/",
        "The harbours and their gauges",
        "<ul>\n<li><a href=\"ness\">Ness</a>, at the lifeboat slip</li>\n\
         <li><a href=\"wick\">Wick</a>, below the fish market</li>\n\
         <li><a href=\"sandhaven\">Sandhaven</a>, on the old pier</li>\n\
         <li><a href=\"graypoint\">Gray Point</a>, under <a href=\"{lighthouse}/towers/graypoint\">\
         the lighthouse</a></li>\n</ul>\n\
         <p>Gauges that are no more: <a href=\"/old-gauge.html\">the float at Brough</a>.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/harbours/ness",
        "Ness",
        "<p>The gauge at Ness hangs in a well of the lifeboat slip. Springs rise four metres and ten \
         centimetres, neaps barely two. With wind from the north the water stands half a foot above \
         the table, and the <a href=\"{ferries}/piers/ness\">ferry</a> uses the upper ramp.</p>",
    )
    .tagged()
    .that(Life::Edited(
        "<p>The gauge at Ness was moved in spring from the lifeboat slip to the new breakwater, where \
         swell disturbs it less. Springs rise four metres and fifteen centimetres there, neaps barely \
         two. With wind from the north the water stands half a foot above the table, and the \
         <a href=\"{ferries}/piers/ness\">ferry</a> uses the upper ramp.</p>",
    )),
    DemoPage::new(
        "/harbours/wick",
        "Wick",
        "<p>Below the fish market of Wick the tide runs through two arches and arrives eleven minutes \
         late on the quay. The pilots know, the anglers do not. Its zero is cut into the granite of \
         the eastern arch, next to the mark of the flood of 1953.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/harbours/sandhaven",
        "Sandhaven",
        "<p>Sandhaven dries out. For three hours around low water boats lie on their keels and the \
         gauge on the old pier shows nothing but mud, so we interpolate between the hours that it \
         sees. Curlews are counted here in winter as a favour to the bird observatory.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/harbours/graypoint",
        "Gray Point",
        "<p>An open coast, a steel tube bolted to the rock and a pressure cell at nine metres: the \
         instrument of Gray Point measures waves as well as tides. Storms have torn it off twice. \
         The keeper of the light telephones when it is silent.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/harbours/skarvoy",
        "Skarvøy",
        "<p>Skarvøy is the smallest island with a gauge of its own. A radar looks down from the bridge \
         on the narrows and sends a reading every minute by radio. Current in the narrows reaches six \
         knots; slack water lasts as long as it takes to boil an egg.</p>",
    )
    .tagged()
    .that(Life::Added),
    DemoPage::new(
        "/tables/",
        "Tide tables",
        "<p>Tables are valid for one calendar year and are replaced, not corrected.</p>\n\
         <ul>\n<li><a href=\"/tables/2026\">2026</a></li>\n<li><a href=\"/tables/2025\">2025</a></li>\n\
         </ul>\n<p>Bound copies: <a href=\"{shop}/books/tables\">our shop</a>.</p>",
    )
    .tagged()
    .that(Life::Edited(
        "<p>Tables are valid for one calendar year and are replaced, not corrected.</p>\n\
         <ul>\n<li><a href=\"/tables/2027\">2027</a></li>\n<li><a href=\"/tables/2026\">2026</a></li>\n\
         </ul>\n<p>Bound copies: <a href=\"{shop}/books/tables\">our shop</a>.</p>",
    )),
    DemoPage::new(
        "/tables/2027",
        "Tables for 2027",
        "<table>\n<tr><th>Month</th><th>Highest</th><th>Lowest</th></tr>\n\
         <tr><td>January</td><td>4.22 m on the 23rd</td><td>0.31 m on the 24th</td></tr>\n\
         <tr><td>March</td><td>4.61 m on the 22nd</td><td>0.08 m on the 23rd</td></tr>\n\
         <tr><td>September</td><td>4.66 m on the 30th</td><td>0.11 m on the 17th</td></tr>\n</table>",
    )
    .tagged()
    .that(Life::Added),
    DemoPage::new(
        "/tables/2026",
        "Tables for 2026",
        "<table>\n<tr><th>Month</th><th>Highest</th><th>Lowest</th></tr>\n\
         <tr><td>February</td><td>4.40 m on the 18th</td><td>0.25 m on the 19th</td></tr>\n\
         <tr><td>April</td><td>4.35 m on the 2nd</td><td>0.19 m on the 18th</td></tr>\n\
         <tr><td>August</td><td>4.58 m on the 13th</td><td>0.14 m on the 14th</td></tr>\n</table>\n\
         <p>Eclipse of the sun on the twelfth of August; expect crowds on every pier.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/tables/2025",
        "Tables for 2025",
        "<table>\n<tr><th>Month</th><th>Highest</th><th>Lowest</th></tr>\n\
         <tr><td>March</td><td>4.70 m on the 30th</td><td>0.02 m on the 31st</td></tr>\n\
         <tr><td>October</td><td>4.52 m on the 8th</td><td>0.20 m on the 9th</td></tr>\n</table>\n\
         <p>The lowest water of the decade uncovered the wreck of the barque Amity.</p>",
    )
    .tagged()
    .that(Life::Removed(404)),
    DemoPage::redirect("/today", 302, "/tables/2026"),
    DemoPage::new(
        "/methods",
        "How we measure",
        "<p>A float, a wire and a drum of paper did the work for a century. Today a pressure cell \
         counts the weight of the water above it, a barometer subtracts the weight of the air, and \
         every sixth minute a mean is kept. Harmonic analysis of nineteen years gives the constants \
         from which <a href=\"/tables/\">tables</a> are computed.</p>\n\
         <p>Instruments are lent by <a href=\"{lighthouse}/society\">the lighthouse society</a>. Read \
         also <a href=\"/methods/errors\">what goes wrong</a>.</p>",
    )
    .tagged()
    .that(Life::Restyled),
    DemoPage::new(
        "/methods/errors",
        "What goes wrong",
        "<p>Weed grows into the well and the curve flattens. A crab sits on the sensor and the sea \
         seems to rise. Clocks lose a minute in cold winters. Each reading carries a mark that says \
         how far it may be trusted, and doubtful ones are never deleted.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/drafts/published",
        "A gauge for the outer mole",
        "<p>Approved in council: a stilling well of reinforced concrete, four metres deep, with a \
         ladder and a lamp. Building begins when the herring season is over.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/drafts/new-gauge",
        "A gauge for the outer mole, draft",
        "<p>Not for publication. Costs are estimates and the ladder is still too short.</p>",
    )
    .tagged(),
];
