//! `shop.tides.example`: sells tables and lamps. One of its pages has two addresses and
//! says which is meant.

use super::written::{DemoHost, DemoPage, Life};

pub const HOST: DemoHost = DemoHost {
    name: "shop.tides.example",
    short: "shop",
    title: "The Tide Shop",
    menu: &[("/", "Shop"), ("/books/", "Books"), ("/lamps/", "Lamps"), ("/basket", "Basket")],
    robots: "User-agent: *\nDisallow: /basket\n\nSitemap: {shop}/sitemap.xml\n",
    sitemap: &["/", "/books/", "/lamps/", "/signed"],
    pages: PAGES,
};

const PAGES: &[DemoPage] = &[
    DemoPage::new(
        "/",
        "Welcome aboard",
        "<p>Everything for people who live by the water: <a href=\"/books/\">books</a>, \
         <a href=\"/lamps/\">lamps</a>, and <a href=\"/parcels\">parcels</a> that float. Run by the \
         <a href=\"{tides}/\">tide institute</a>, which needs the money.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/books/",
        "Books",
        "<ul>\n<li><a href=\"tables\">Tide tables, bound</a></li>\n\
         <li><a href=\"knots\">Knots for the impatient</a></li>\n</ul>",
    )
    .tagged(),
    DemoPage::new(
        "/books/tables",
        "Tide tables, bound",
        "<p>Twelve months of high and low water in blue linen, with a ribbon and a pencil loop. Price: \
         14.50. Out of date by design.</p>",
    )
    .tagged()
    .that(Life::Edited(
        "<p>Twelve months of high and low water in blue linen, with a ribbon and a pencil loop. Price: \
         16.00. Out of date by design.</p>",
    )),
    DemoPage::new(
        "/books/knots",
        "Knots for the impatient",
        "<p>Eight knots, no stories. The bowline is on page one, where it belongs. Wipe-clean pages, a \
         length of cord included. Price: 9.00.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/lamps/",
        "Lamps",
        "<ul>\n<li><a href=\"storm-lantern\">Storm lantern</a> \
         (<a href=\"storm-lantern?colour=brass\">in brass</a>)</li>\n\
         <li><a href=\"masthead\">Masthead light</a></li>\n</ul>",
    )
    .tagged()
    .that(Life::Edited(
        "<ul>\n<li><a href=\"storm-lantern\">Storm lantern</a> \
         (<a href=\"storm-lantern?colour=brass\">in brass</a>)</li>\n\
         <li><a href=\"masthead\">Masthead light</a></li>\n<li><a href=\"reading\">Reading lamp for \
         berths</a></li>\n</ul>",
    )),
    DemoPage::new("/lamps/storm-lantern", "Storm lantern", STORM_LANTERN).tagged(),
    DemoPage::new("/lamps/storm-lantern?colour=brass", "Storm lantern", STORM_LANTERN)
        .with_head("<link rel=\"canonical\" href=\"{shop}/lamps/storm-lantern\">\n")
        .tagged(),
    DemoPage::new(
        "/lamps/masthead",
        "Masthead light",
        "<p>White, visible over two hundred and twenty-five degrees as the rules of the road demand, and \
         bright enough to annoy the neighbours in a marina. Twelve volts. Price: 64.00.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/lamps/reading",
        "Reading lamp for berths",
        "<p>Clamps to a bunk board, bends like an eel, and goes out by itself after one chapter. A red \
         filter keeps the helmsman's eyes used to the dark. Price: 22.00.</p>",
    )
    .tagged()
    .that(Life::Added),
    DemoPage::new(
        "/parcels",
        "Parcels",
        "<p>We send on Mondays and, tide permitting, on Thursdays. Islands take a day longer. Breakages \
         are replaced if you send us the pieces and a good story.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/clearance",
        "Clearance",
        "<p>Tables of past years at a tenth of the price, for historians and for lighting fires.</p>",
    )
    .tagged(),
    DemoPage::new(
        "/signed",
        "Signed copies",
        "<p>Ada Merrow's collected columns, signed on a moving deck; no two signatures are alike. Known \
         to readers of our sitemap only.</p>",
    )
    .tagged(),
    DemoPage::new("/basket", "Your basket", "<p>It is empty.</p>"),
];

const STORM_LANTERN: &str = "<p>Galvanised, with a wire cage and a wick as broad as two fingers. It has \
     been dropped from the pier for this description and still burns. Holds oil for eighteen hours. \
     Price: 38.00.</p>";
