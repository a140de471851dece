//! Questions about the indexes of a place, one after the other.
//!
//! The process that holds a directory is asked each time. When nobody holds it this process
//! does, from the first question that finds it so to the last: the files of the index have
//! one process at a time. A directory that cannot be written is not held but looked at. Invariant: a directory is held at most once in a session, however
//! many pages of a list are asked for.

use super::{Asked, Held, Place};
use crate::cli::answers::Answers;
use serde_json::Value as Json;
use store::datadir::Layout;
use store::socket::{self, Question};

/// Whoever answers.
pub struct IndexSession<'a> {
    place: &'a Place,
    needs_objects: bool,
    own: Option<Own>,
}

/// This process, once it answers itself.
struct Own {
    answers: Answers,
    // Declared last and so dropped last: what answers uses what is held.
    _held: Option<Box<Held>>,
}

impl Place {
    /// Begins to ask about the link index.
    pub fn link_session(&self) -> IndexSession<'_> {
        IndexSession { place: self, needs_objects: false, own: None }
    }

    /// Begins to ask about the search index, which is in the objects.
    pub fn search_session(&self) -> IndexSession<'_> {
        IndexSession { place: self, needs_objects: true, own: None }
    }
}

impl IndexSession<'_> {
    /// Asks one question.
    pub fn ask(&mut self, verb: &str, args: impl serde::Serialize) -> anyhow::Result<Json> {
        let question = Question { verb: verb.to_owned(), args: serde_json::to_value(args)? };
        if self.place.server.is_named() {
            return self.place.server.ask(&question);
        }
        let own = match self.own.take() {
            Some(own) => own,
            None if self.place.database.is_some() => {
                let objects = self.needs_objects.then(|| self.place.objects()).transpose()?;
                Own { answers: Answers::of_database(self.place.rows()?, objects), _held: None }
            }
            None => {
                let layout = self.place.data.existing()?;
                match self.ask_or_open(&layout, &question)? {
                    Whose::Others(answer) => return Ok(answer),
                    Whose::Own(own) => *own,
                }
            }
        };
        let own = self.own.insert(own);
        own.answers.answer(&question).map_err(anyhow::Error::msg)
    }

    /// Asks the process that holds a directory, and opens it when nobody does.
    fn ask_or_open(&self, layout: &Layout, question: &Question) -> anyhow::Result<Whose> {
        if !layout.is_read_only() {
            return Ok(match self.place.ask_or_hold(layout, question)? {
                Asked::Answered(answer) => Whose::Others(answer),
                Asked::Held(held) => {
                    let answers = Answers { doing: None, ..held.answers("") };
                    Whose::Own(Box::new(Own { answers, _held: Some(held) }))
                }
            });
        }
        // Its holder may see it where it can be written, such as outside of this container.
        if let Some(answer) = socket::ask(layout, question)? {
            return Ok(Whose::Others(answer));
        }
        let answers = Answers::of_read_only(self.place.rows()?, layout)?;
        Ok(Whose::Own(Box::new(Own { answers, _held: None })))
    }
}

/// Who answers.
enum Whose {
    /// Another process, and it has said this.
    Others(Json),
    /// This one.
    Own(Box<Own>),
}
