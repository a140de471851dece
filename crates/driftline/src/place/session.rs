//! Verbs asked at a place, one after the other.
//!
//! The process that holds a directory is asked each time. When nobody holds it, this process
//! answers itself: from the rows beside whoever may come, or from the indexes, whose files have
//! one process at a time, so that it holds the directory from the first such request to the
//! last. A directory that cannot be written is not held but looked at. Invariant: a directory
//! is held at most once in a session, however many pages of a list are asked for.

use super::calls::{HolderAnswer, question};
use super::{OpenPlace, Place};
use crate::verbs::access::Asker;
use crate::verbs::context::VerbContext;
use crate::verbs::{self, Opens, Verb, wire};
use serde_json::Value as Json;
use store::datadir::Layout;
use store::socket::{self, SocketRequest};

/// Whoever answers, for several requests.
pub struct Session<'a> {
    place: &'a Place,
    opens: Opens,
    own: Option<OwnAnswers>,
}

/// This process, once it answers itself.
struct OwnAnswers {
    context: VerbContext,
    // Declared last and so dropped last: what answers uses what is held.
    _held: Option<Box<OpenPlace>>,
}

/// Who answers a request.
enum Answerer {
    /// Another process, and it has answered this.
    Other(Json),
    This(Box<OwnAnswers>),
}

impl Place {
    /// Begins to ask verbs that need this open.
    pub fn session(&self, opens: Opens) -> Session<'_> {
        Session { place: self, opens, own: None }
    }
}

impl Session<'_> {
    pub fn ask<V: Verb>(&mut self, request: V::Request) -> anyhow::Result<V::Response> {
        let own = match self.own.take() {
            Some(own) => own,
            None => match self.answerer(&question(V::NAME, &request)?)? {
                Answerer::Other(response) => return wire::response(response),
                Answerer::This(own) => *own,
            },
        };
        let own = self.own.insert(own);
        verbs::answer::<V>(&own.context, Asker::CommandLine, request)
    }

    /// Asks one verb for programs: the answer of another process is passed on as it is.
    pub fn ask_json<V: Verb>(&mut self, request: V::Request) -> anyhow::Result<Json> {
        match self.answerer(&question(V::NAME, &request)?)? {
            Answerer::Other(response) => Ok(response),
            Answerer::This(own) => {
                wire::encode(&verbs::answer::<V>(&own.context, Asker::CommandLine, request)?)
            }
        }
    }

    fn answerer(&self, question: &SocketRequest) -> anyhow::Result<Answerer> {
        let place = self.place;
        if place.server.is_named() {
            return Ok(Answerer::Other(place.server.ask(question)?));
        }
        if place.database.is_some() {
            let needs_objects = self.opens == Opens::SearchIndex;
            let objects = needs_objects.then(|| place.objects()).transpose()?;
            return Ok(this(VerbContext::of_database(place.rows()?, objects), None));
        }
        let layout = place.data.existing()?;
        match self.opens {
            Opens::Rows => match socket::ask(&layout, question)? {
                Some(response) => Ok(Answerer::Other(response)),
                None => Ok(this(VerbContext::of_rows(place.rows()?), None)),
            },
            Opens::LinkIndex | Opens::SearchIndex => self.answerer_of_index(&layout, question),
        }
    }

    /// The process that holds a directory, or this one, which opens it when nobody does.
    fn answerer_of_index(
        &self,
        layout: &Layout,
        question: &SocketRequest,
    ) -> anyhow::Result<Answerer> {
        if !layout.is_read_only() {
            return Ok(match self.place.ask_or_hold(layout, question)? {
                HolderAnswer::Answered(response) => Answerer::Other(response),
                HolderAnswer::Held(held) => {
                    let context = VerbContext { doing: None, ..held.context("") };
                    this(context, Some(held))
                }
            });
        }
        // Its holder may see it where it can be written, such as outside of this container.
        if let Some(response) = socket::ask(layout, question)? {
            return Ok(Answerer::Other(response));
        }
        Ok(this(VerbContext::of_read_only(self.place.rows()?, layout)?, None))
    }
}

fn this(context: VerbContext, held: Option<Box<OpenPlace>>) -> Answerer {
    Answerer::This(Box::new(OwnAnswers { context, _held: held }))
}
