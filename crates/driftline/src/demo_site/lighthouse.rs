//! `lighthouse.example`: a society with an old server. It gives no validators, and its
//! calendar never ends.

use super::written::{DemoHost, DemoPage, Life};

pub const HOST: DemoHost = DemoHost {
    name: "lighthouse.example",
    short: "lighthouse",
    title: "Society of the Lighthouses",
    menu: &[
        ("/", "Home"),
        ("/society", "Society"),
        ("/towers/", "Towers"),
        ("/calendar/", "Calendar"),
    ],
    robots: "User-agent: *\nDisallow:\n",
    sitemap: &[],
    pages: PAGES,
};

const PAGES: &[DemoPage] = &[
    DemoPage::new(
        "/",
        "A light for everybody",
        "<p>Nine towers stand on this coast. Three are manned, five blink by themselves, one is a \
         restaurant. We paint them, and tell <a href=\"/history/\">their stories</a>.</p>\n\
         <p>Getting here: <a href=\"/ferry\">by ferry</a>.</p>",
    ),
    DemoPage::redirect("/ferry", 301, "{ferries}/timetable"),
    DemoPage::new(
        "/society",
        "The society",
        "<p>Founded in a storm in 1902 by two keepers and a bishop. Members pay a tin of paint a year. \
         In return they may ring the fog bell on their birthday. We lend instruments to \
         <a href=\"{tides}/\">the tide institute</a> and get most of them back.</p>",
    )
    .that(Life::Edited(
        "<p>Founded in a storm in 1902 by two keepers and a bishop. Members pay a tin of paint a year, \
         from next year two. In return they may ring the fog bell on their birthday. We lend \
         instruments to <a href=\"{tides}/\">the tide institute</a> and get most of them back.</p>",
    )),
    DemoPage::new(
        "/towers/",
        "The towers",
        "<ul>\n<li><a href=\"graypoint\">Gray Point</a></li>\n<li><a href=\"skerry\">The Skerry</a></li>\n\
         <li><a href=\"harbour\">Harbour light</a></li>\n<li><a href=\"maiden\">The Maiden</a></li>\n</ul>",
    ),
    DemoPage::new(
        "/towers/graypoint",
        "Gray Point",
        "<p>White, forty-one metres, two flashes every fifteen seconds. A hundred and ninety-six steps \
         of slate lead up to the lamp, and as many down, though nobody believes that on the way.</p>",
    ),
    DemoPage::new(
        "/towers/skerry",
        "The Skerry",
        "<p>Built on a rock that is dry for two hours a day. Masons were roped to iron rings and sang so \
         that the boat could count them in fog. Unmanned since a helicopter learned to land there.</p>",
    ),
    DemoPage::new(
        "/towers/harbour",
        "Harbour light",
        "<p>Green, cast iron, as tall as a cottage, on the end of the pier. Children climb it; the \
         harbour master pretends not to see. It is the only one of the nine with a letter box.</p>",
    ),
    DemoPage::new(
        "/towers/maiden",
        "The Maiden",
        "<p>Dark since 1988 and for sale. The roof leaks, owls live in the lantern, and from the gallery \
         three counties can be seen. Serious offers to the treasurer.</p>",
    )
    .that(Life::Removed(404)),
    DemoPage::new(
        "/history/",
        "Stories",
        "<p>What keepers wrote into their logs when nothing happened, and when too much did: \
         <a href=\"great-storm\">the great storm</a>, <a href=\"bell\">the bell that rang itself</a>.</p>",
    ),
    DemoPage::new(
        "/history/great-storm",
        "The great storm",
        "<p>On the third night the lantern glass broke and the keeper's wife held a tablecloth before \
         the flame until dawn. Eleven ships passed. None of them knew. The cloth hangs in the vestry \
         of Saint Brendan's with its scorched edge turned to the wall.</p>",
    ),
    DemoPage::new(
        "/history/bell",
        "The bell that rang itself",
        "<p>For one week of fog in 1911 the bell of the Skerry rang though its rope was coiled on the \
         hook. A committee was rowed out. It found a seal.</p>",
    ),
    DemoPage::new(
        "/calendar/",
        "Calendar",
        "<p>No meetings this month. <a href=\"next/\">Next month</a></p>",
    ),
];
