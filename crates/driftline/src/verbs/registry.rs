//! A verb's line in the table of its room: how it is found by its name, and its route.

use super::access::{Asker, Needs};
use super::changes::ChangeContext;
use super::context::VerbContext;
use super::{Change, Verb, answer, carry_out, wire};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value as Json;

/// A verb as it is found by its name.
pub struct RegisteredVerb {
    pub name: &'static str,
    /// What a caller of a server needs; `None` if it is not for callers.
    pub needs: Option<Needs>,
    pub run: Run,
    pub route: Option<VerbRoute>,
}

/// The function of a verb, from JSON to JSON.
#[derive(Clone, Copy)]
pub enum Run {
    Answer(fn(&VerbContext, Asker<'_>, Json) -> anyhow::Result<Json>),
    CarryOut(fn(&ChangeContext, Asker<'_>, Json) -> anyhow::Result<Json>),
}

/// What JSON looks like.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The route of a verb in the HTTP API: the fields of its request are the parameters.
pub struct VerbRoute {
    pub path: &'static str,
    /// What it is for.
    pub about: &'static str,
    pub request: Shape,
    pub response: Shape,
}

/// The line of a verb that is asked by its name alone.
pub const fn verb<V: Verb>() -> RegisteredVerb {
    let run = Run::Answer(answer_json::<V>);
    RegisteredVerb { name: V::NAME, needs: V::NEEDS, run, route: None }
}

/// The line of a verb that has a route, too.
pub const fn verb_at<V: Verb>(path: &'static str, about: &'static str) -> RegisteredVerb
where
    V::Request: JsonSchema,
    V::Response: JsonSchema,
{
    assert!(V::NEEDS.is_some(), "a verb with a route says what its callers need");
    let (request, response) = (shape::<V::Request> as Shape, shape::<V::Response> as Shape);
    let route = VerbRoute { path, about, request, response };
    RegisteredVerb { route: Some(route), ..verb::<V>() }
}

/// The line of a change.
pub const fn change<C: Change>() -> RegisteredVerb {
    let run = Run::CarryOut(carry_out_json::<C>);
    RegisteredVerb { name: C::NAME, needs: C::NEEDS, run, route: None }
}

fn shape<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

fn answer_json<V: Verb>(
    context: &VerbContext,
    asker: Asker<'_>,
    request: Json,
) -> anyhow::Result<Json> {
    wire::encode(&answer::<V>(context, asker, wire::request::<V::Request>(request)?)?)
}

fn carry_out_json<C: Change>(
    context: &ChangeContext,
    asker: Asker<'_>,
    request: Json,
) -> anyhow::Result<Json> {
    wire::encode(&carry_out::<C>(context, asker, wire::request::<C::Request>(request)?)?)
}
