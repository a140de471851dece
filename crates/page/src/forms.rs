//! Forms of a page, as a browser would send them: what a login needs.
//!
//! Relies on html5gum to tokenise. A form is what stands between its tags; a control
//! that names another form by `form=` is not followed there. Invariant: whatever the page
//! says, no more is kept than the limits here allow.

use html5gum::{DefaultEmitter, HtmlString, Spanned, Token, Tokenizer};
use std::collections::BTreeMap;

/// Forms of one page.
pub const FORMS_MAX: usize = 100;
/// Controls of one form.
pub const FIELDS_MAX: usize = 1_000;
/// Bytes of a name or a value.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// A `<form>` with the values that a browser would send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// Its `name`, or else its `id`.
    pub name: String,
    /// Where it goes, as it is written; empty means the page itself.
    pub action: String,
    /// Whether it is posted.
    pub is_post: bool,
    /// Names and values that are sent if nobody changes anything, in their order.
    pub fields: Vec<(String, String)>,
}

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

/// The forms of a page.
pub fn forms(html: &str) -> Vec<Form> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut reading = FormParser::default();
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => reading.begins(&tag.name, &tag.attributes),
            Token::EndTag(tag) => reading.ends(&tag.name),
            Token::String(text) => reading.text(&text.value),
            _ => {}
        }
    }
    reading.form_ends();
    reading.forms
}

/// What is being read.
#[derive(Default)]
struct FormParser {
    forms: Vec<Form>,
    form: Option<Form>,
    has_button: bool,
    select: Option<Select>,
    /// A text area's name and what stands in it so far.
    area: Option<(String, String)>,
}

/// A list to choose from.
#[derive(Default)]
struct Select {
    name: String,
    first: Option<String>,
    chosen: Vec<String>,
    is_multiple: bool,
    /// An option whose value is its text.
    open: Option<(String, bool)>,
}

impl FormParser {
    fn begins(&mut self, name: &[u8], attributes: &Attributes) {
        if name == b"form" && self.form.is_none() {
            let form = Form {
                name: first_of(attributes, [&b"name"[..], b"id"]),
                action: value(attributes, b"action").unwrap_or_default(),
                is_post: value(attributes, b"method")
                    .is_some_and(|it| it.trim().eq_ignore_ascii_case("post")),
                fields: Vec::new(),
            };
            (self.form, self.has_button) = (Some(form), false);
            return;
        }
        if self.form.is_none() || attributes.contains_key(&b"disabled"[..]) {
            return;
        }
        let named = value(attributes, b"name").filter(|it| !it.is_empty());
        match name {
            b"input" => self.input(named, attributes),
            b"button" => {
                let kind = value(attributes, b"type").unwrap_or_default();
                if kind.is_empty() || kind.eq_ignore_ascii_case("submit") {
                    self.button(named, attributes);
                }
            }
            b"select" => {
                let is_multiple = attributes.contains_key(&b"multiple"[..]);
                self.select = named.map(|name| Select { name, is_multiple, ..Select::default() });
            }
            b"option" => self.option(attributes),
            b"textarea" => self.area = named.map(|name| (name, String::new())),
            _ => {}
        }
    }

    fn input(&mut self, named: Option<String>, attributes: &Attributes) {
        let kind = value(attributes, b"type").unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            "submit" | "image" => self.button(named, attributes),
            "reset" | "button" | "file" => {}
            "checkbox" | "radio" => {
                if attributes.contains_key(&b"checked"[..]) {
                    let value = value(attributes, b"value").unwrap_or_else(|| "on".to_owned());
                    self.field(named, value);
                }
            }
            _ => self.field(named, value(attributes, b"value").unwrap_or_default()),
        }
    }

    /// The first button is the one that the return key presses.
    fn button(&mut self, named: Option<String>, attributes: &Attributes) {
        if !std::mem::replace(&mut self.has_button, true) {
            self.field(named, value(attributes, b"value").unwrap_or_default());
        }
    }

    fn field(&mut self, named: Option<String>, value: String) {
        if let (Some(form), Some(name)) = (&mut self.form, named)
            && form.fields.len() < FIELDS_MAX
        {
            form.fields.push((name, value));
        }
    }

    fn option(&mut self, attributes: &Attributes) {
        self.option_ends();
        if let Some(select) = &mut self.select {
            let chosen = attributes.contains_key(&b"selected"[..]);
            match value(attributes, b"value") {
                Some(value) => select.take(value, chosen),
                None => select.open = Some((String::new(), chosen)),
            }
        }
    }

    fn option_ends(&mut self) {
        if let Some(select) = &mut self.select
            && let Some((text, chosen)) = select.open.take()
        {
            select.take(text.trim().to_owned(), chosen);
        }
    }

    fn text(&mut self, text: &[u8]) {
        let open = match (&mut self.area, &mut self.select) {
            (Some((_, content)), _) => content,
            (None, Some(Select { open: Some((content, _)), .. })) => content,
            _ => return,
        };
        let text = String::from_utf8_lossy(text);
        let room = VALUE_BYTES_MAX.saturating_sub(open.len());
        open.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn ends(&mut self, name: &[u8]) {
        match name {
            b"form" => self.form_ends(),
            b"option" => self.option_ends(),
            b"select" => self.select_ends(),
            b"textarea" => {
                if let Some((name, text)) = self.area.take() {
                    // A line break right behind the tag is not part of it.
                    let text = text.strip_prefix('\n').map(str::to_owned).unwrap_or(text);
                    self.field(Some(name), text);
                }
            }
            _ => {}
        }
    }

    fn select_ends(&mut self) {
        self.option_ends();
        let Some(mut select) = self.select.take() else { return };
        let given = match select.is_multiple {
            true => select.chosen,
            false => select.chosen.pop().or(select.first).into_iter().collect(),
        };
        for value in given {
            self.field(Some(select.name.clone()), value);
        }
    }

    fn form_ends(&mut self) {
        self.select_ends();
        self.area = None;
        if let Some(form) = self.form.take()
            && self.forms.len() < FORMS_MAX
        {
            self.forms.push(form);
        }
    }
}

impl Select {
    fn take(&mut self, value: String, chosen: bool) {
        if chosen && self.chosen.len() < FIELDS_MAX {
            self.chosen.push(value.clone());
        }
        self.first.get_or_insert(value);
    }
}

fn value(attributes: &Attributes, name: &[u8]) -> Option<String> {
    let value = &attributes.get(name)?.value;
    let text = String::from_utf8_lossy(value);
    Some(text[..text.floor_char_boundary(VALUE_BYTES_MAX)].to_owned())
}

fn first_of(attributes: &Attributes, names: [&[u8]; 2]) -> String {
    names.into_iter().find_map(|it| value(attributes, it)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(html: &str) -> Vec<(String, String)> {
        forms(html).remove(0).fields
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_login_form_is_read_as_a_browser_reads_it() {
        let html = r#"<p>Hello<form NAME="login" action="/do?x=1&amp;y=2" method="POST">
            <input type=hidden name=token value="a&quot;b"><input name=user>
            <input type="password" name="pass" value=""><input type=checkbox name=stay checked>
            <input type=checkbox name=no><input type=radio name=r value=1>
            <input type=radio name=r value=2 checked><input type=file name=f>
            <input name=off value=x disabled><button name=go value=1>Log in</button>
            <input type=submit name=cancel value=2></form><input name=outside value=1>"#;
        let found = forms(html);
        assert_eq!(found.len(), 1);
        let form = &found[0];
        let about = (form.name.as_str(), form.action.as_str(), form.is_post);
        assert_eq!(about, ("login", "/do?x=1&y=2", true));
        let expected = [
            ("token", "a\"b"),
            ("user", ""),
            ("pass", ""),
            ("stay", "on"),
            ("r", "2"),
            ("go", "1"),
        ];
        assert_eq!(form.fields, pairs(&expected));
    }

    #[test]
    fn lists_and_text_areas_give_what_they_show() {
        let html = "<form id=f><select name=a><option>one<option value=2 selected>two</select>
            <select name=b><option>first</option><option>second</option></select>
            <select name=c multiple><option selected>x</option><option selected>y</select>
            <select name=d></select><textarea name=t>\nsome <b>text</textarea></form>";
        let expected = [("a", "2"), ("b", "first"), ("c", "x"), ("c", "y"), ("t", "some <b>text")];
        assert_eq!(sent(html), pairs(&expected));
        assert_eq!((forms(html)[0].name.as_str(), forms(html)[0].is_post), ("f", false));
    }

    #[test]
    fn what_looks_like_a_form_and_is_none_is_not_read() {
        assert_eq!(forms("<!-- <form name=x> --><script>'<form name=y>'</script>"), []);
        let nested = forms("<form name=a><input name=x><form name=b><input name=y></form>");
        assert_eq!(nested.len(), 1, "a form cannot stand in another: {nested:?}");
        assert_eq!(nested[0].fields, pairs(&[("x", ""), ("y", "")]));
        assert_eq!(sent("<form><input name=x value=1>"), pairs(&[("x", "1")]), "never closed");
    }

    #[test]
    fn nothing_grows_without_limit() {
        let many = "<form>".to_owned() + &"<input name=x>".repeat(FIELDS_MAX + 5);
        assert_eq!(sent(&many).len(), FIELDS_MAX);
        assert_eq!(forms(&"<form></form>".repeat(FORMS_MAX + 5)).len(), FORMS_MAX);
        let long = format!("<form><textarea name=x>{}", "é".repeat(VALUE_BYTES_MAX));
        assert_eq!(sent(&(long.clone() + "</textarea>"))[0].1.len(), VALUE_BYTES_MAX);
        assert_eq!(sent(&long), [], "a text area that never ends is not sent");
    }
}
