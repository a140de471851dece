//! Verbs asked and changes made at a place: by the server that was named, by the process that
//! holds a data directory, or by this process when nobody does.

use super::holder::is_in_use;
use super::{OpenPlace, Place, TRIES_MAX, TRY_AGAIN};
use crate::verbs::access::Asker;
use crate::verbs::changes::ChangeContext;
use crate::verbs::{self, Change, Verb, wire};
use serde_json::Value as Json;
use store::datadir::Layout;
use store::socket::{self, SocketRequest};

/// What came of asking the holder of a directory.
pub(super) enum HolderAnswer {
    /// Somebody held the directory, and answered this.
    Answered(Json),
    /// Nobody did, and this process does now.
    Held(Box<OpenPlace>),
}

/// A verb's request, as another process reads it.
pub(super) fn question(
    name: &str,
    request: &impl serde::Serialize,
) -> anyhow::Result<SocketRequest> {
    Ok(SocketRequest { verb: name.to_owned(), args: wire::encode(request)? })
}

impl Place {
    /// Asks a verb, with what it needs open.
    pub fn ask<V: Verb>(&self, request: V::Request) -> anyhow::Result<V::Response> {
        self.session(V::OPENS).ask::<V>(request)
    }

    /// Asks a verb for programs: the answer of another process is passed on as it is, whatever
    /// this one knows of it.
    pub fn ask_json<V: Verb>(&self, request: V::Request) -> anyhow::Result<Json> {
        self.session(V::OPENS).ask_json::<V>(request)
    }

    /// Makes a change: through the process that holds the directory, or by this one, which
    /// holds it meanwhile.
    pub fn change<C: Change>(&self, request: C::Request) -> anyhow::Result<C::Response> {
        let question = question(C::NAME, &request)?;
        if self.server.is_named() {
            return wire::response(self.server.ask(&question)?);
        }
        let make =
            |db| verbs::carry_out::<C>(&ChangeContext::of_rows(db), Asker::CommandLine, request);
        if self.database.is_some() {
            return make(self.rows()?);
        }
        let layout = self.data.existing()?;
        match self.ask_or_hold(&layout, &question)? {
            HolderAnswer::Answered(response) => wire::response(response),
            HolderAnswer::Held(held) => make(held.db.clone()),
        }
    }

    /// Asks the process that holds the directory, and holds it when nobody does.
    pub(super) fn ask_or_hold(
        &self,
        layout: &Layout,
        question: &SocketRequest,
    ) -> anyhow::Result<HolderAnswer> {
        let mut tries = 0;
        loop {
            if let Some(answer) = socket::ask(layout, question)? {
                return Ok(HolderAnswer::Answered(answer));
            }
            tries += 1;
            match self.hold() {
                // It may be about to listen, or about to end: another such command, perhaps.
                Err(error) if tries < TRIES_MAX && is_in_use(&error) => {
                    std::thread::park_timeout(TRY_AGAIN);
                }
                held => return held.map(|held| HolderAnswer::Held(Box::new(held))),
            }
        }
    }
}
