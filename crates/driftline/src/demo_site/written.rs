//! A page of the sample web as it is written down, what becomes of it, and its HTML.
//!
//! Invariant: a page is a pure function of its description, the state and the port.

use super::SiteState;

/// One of the invented hosts.
#[derive(Debug)]
pub struct DemoHost {
    pub name: &'static str,
    /// How its pages name it; `{short}` in a body is its origin.
    pub short: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Links on top of every page: path and words.
    pub menu: &'static [(&'static str, &'static str)],
    /// Its robots.txt, with `{short}` as in a body.
    pub robots: &'static str,
    /// Paths that its sitemap lists while they are there; without any it has none.
    pub sitemap: &'static [&'static str],
    pub pages: &'static [DemoPage],
}

/// One path of a host.
#[derive(Debug, Clone, Copy)]
pub struct DemoPage {
    pub path: &'static str,
    /// Its title and heading.
    pub title: &'static str,
    /// What stands below the heading.
    pub body: &'static str,
    /// What stands in the head besides the title.
    pub head: &'static str,
    /// What the server says about its age.
    pub validator: Validator,
    /// What becomes of it.
    pub life: Life,
}

/// What lets a crawler ask whether a page is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validator {
    /// Nothing: it must be fetched and compared.
    None,
    Tag,
    Date,
}

/// What becomes of a page between the two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Stays,
    /// It is there only afterwards.
    Added,
    /// Afterwards it has this body.
    Edited(&'static str),
    /// Afterwards its markup is another; its text is not.
    Restyled,
    /// Afterwards there is this status in its place.
    Removed(u16),
    /// Afterwards it redirects there, for good.
    Moved(&'static str),
    /// It redirects there with this status, before and afterwards.
    Redirects(u16, &'static str),
}

/// What is at a path in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    /// A page, with its validator.
    Html(String, Validator),
    /// A redirect to a URL.
    Redirect(u16, String),
    Status(u16),
}

impl DemoPage {
    /// A page that stays as it is and has no validator.
    pub const fn new(path: &'static str, title: &'static str, body: &'static str) -> DemoPage {
        DemoPage { path, title, body, head: "", validator: Validator::None, life: Life::Stays }
    }

    /// A path that leads elsewhere.
    pub const fn redirect(path: &'static str, status: u16, to: &'static str) -> DemoPage {
        DemoPage { life: Life::Redirects(status, to), ..DemoPage::new(path, "", "") }
    }

    pub const fn tagged(self) -> DemoPage {
        DemoPage { validator: Validator::Tag, ..self }
    }

    pub const fn dated(self) -> DemoPage {
        DemoPage { validator: Validator::Date, ..self }
    }

    /// With these elements in its head.
    pub const fn with_head(self, head: &'static str) -> DemoPage {
        DemoPage { head, ..self }
    }

    pub const fn that(self, life: Life) -> DemoPage {
        DemoPage { life, ..self }
    }

    /// What is there in a state.
    pub fn in_state(&self, host: &DemoHost, state: SiteState, port: u16) -> There {
        use SiteState::{After, Before};
        match (self.life, state) {
            (Life::Redirects(status, to), _) => There::Redirect(status, located(to, host, port)),
            (Life::Moved(to), After) => There::Redirect(301, located(to, host, port)),
            (Life::Added, Before) => There::Status(404),
            (Life::Removed(status), After) => There::Status(status),
            (Life::Edited(body), After) => self.html(host, body, MAIN, port),
            (Life::Restyled, After) => self.html(host, self.body, MAIN_RESTYLED, port),
            _ => self.html(host, self.body, MAIN, port),
        }
    }

    /// When it was last changed, as its server would say. Both days lie in the past, so
    /// that no crawler finds them odd.
    pub fn modified(&self, state: SiteState) -> &'static str {
        match (self.life, state) {
            (Life::Edited(_) | Life::Restyled | Life::Added, SiteState::After) => {
                "Thu, 05 Mar 2026 07:30:00 GMT"
            }
            _ => "Mon, 02 Feb 2026 16:00:00 GMT",
        }
    }

    fn html(&self, host: &DemoHost, body: &str, main: &str, port: u16) -> There {
        let mut menu = String::new();
        for (path, words) in host.menu {
            menu.push_str(&format!("<li><a href=\"{path}\">{words}</a></li>"));
        }
        let (title, site) = (self.title, host.title);
        let head = linked(self.head, port);
        let body = linked(body, port);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <title>{title} | {site}</title>\n{head}</head>\n<body>\n\
             <nav><ul>{menu}</ul></nav>\n{main}\n<h1>{title}</h1>\n{body}\n</main>\n\
             <footer>{site}</footer>\n</body>\n</html>\n"
        );
        There::Html(html, self.validator)
    }
}

const MAIN: &str = "<main>";
const MAIN_RESTYLED: &str = "<main id=\"content\" class=\"wide\">";

/// A target in full: a path is one of the host's own.
fn located(to: &str, host: &DemoHost, port: u16) -> String {
    if to.starts_with('/') {
        return format!("{}{to}", origin(host, port));
    }
    linked(to, port)
}

pub fn origin(host: &DemoHost, port: u16) -> String {
    format!("http://{}:{port}", host.name)
}

/// A text with `{short}` of every host replaced by its origin.
pub fn linked(text: &str, port: u16) -> String {
    super::HOSTS.iter().fold(text.to_owned(), |text, host| {
        text.replace(&format!("{{{}}}", host.short), &origin(host, port))
    })
}
