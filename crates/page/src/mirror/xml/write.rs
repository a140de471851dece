//! XML written element by element: two blanks a level, one line a tag.

use std::io::Write;

use crate::mirror::Error;

/// Writes a document. The caller sees to it that elements are closed.
pub(in crate::mirror) struct Writer<W> {
    out: W,
    depth: usize,
    value_bytes_max: usize,
    line: String,
}

/// An attribute that is written if it has a value.
pub(in crate::mirror) type Attribute = (&'static str, Option<String>);

impl<W: Write> Writer<W> {
    /// A writer that has written the declaration.
    pub(in crate::mirror) fn new(mut out: W, value_bytes_max: usize) -> Result<Writer<W>, Error> {
        out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        Ok(Writer { out, depth: 0, value_bytes_max, line: String::new() })
    }

    /// Begins an element.
    pub(in crate::mirror) fn open(
        &mut self,
        name: &str,
        attributes: &[Attribute],
    ) -> Result<(), Error> {
        self.start(name, attributes)?;
        self.line.push('\n');
        self.depth += 1;
        self.flush()
    }

    /// Ends an element.
    pub(in crate::mirror) fn close(&mut self, name: &str) -> Result<(), Error> {
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        self.line.push_str("</");
        self.line.push_str(name);
        self.line.push_str(">\n");
        self.flush()
    }

    /// Writes an element with a text.
    pub(in crate::mirror) fn element(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.check(value)?;
        self.start(name, &[])?;
        escape(&mut self.line, value, false);
        self.line.push_str("</");
        self.line.push_str(name);
        self.line.push_str(">\n");
        self.flush()
    }

    /// What was written to.
    pub(in crate::mirror) fn finish(mut self) -> Result<W, Error> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn start(&mut self, name: &str, attributes: &[Attribute]) -> Result<(), Error> {
        self.indent();
        self.line.push('<');
        self.line.push_str(name);
        for (name, value) in attributes {
            let Some(value) = value else { continue };
            self.check(value)?;
            self.line.push(' ');
            self.line.push_str(name);
            self.line.push_str("=\"");
            escape(&mut self.line, value, true);
            self.line.push('"');
        }
        self.line.push('>');
        Ok(())
    }

    /// What a reader would refuse is not written.
    fn check(&self, value: &str) -> Result<(), Error> {
        let limit = self.value_bytes_max;
        if value.len() > limit {
            return Err(Error::TooLarge { what: "bytes of a value", limit });
        }
        Ok(())
    }

    fn indent(&mut self) {
        self.line.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// Appends a value so that a reader gets it back.
fn escape(out: &mut String, value: &str, in_attribute: bool) {
    for ch in super::encoded(value).chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            // Readers make blanks of these in attributes, and of a CR a line end everywhere.
            '\n' | '\t' if in_attribute => out.push_str(&format!("&#{};", u32::from(ch))),
            '\r' => out.push_str("&#13;"),
            ch => out.push(ch),
        }
    }
}
