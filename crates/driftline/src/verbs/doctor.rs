//! What the rows say of themselves: whether everything is well with them.
//!
//! Invariant: nothing is repaired and nothing is left behind; no check waits for long.

pub mod check;
pub mod data;

use super::Verb;
use super::access::Needs;
use super::context::VerbContext;
use check::Check;

/// The findings about the rows.
pub struct Doctor;

impl Verb for Doctor {
    const NAME: &'static str = "doctor";
    const NEEDS: Option<Needs> = None;
    type Request = ();
    type Response = Vec<Check>;

    fn answer(context: &VerbContext, _: ()) -> anyhow::Result<Vec<Check>> {
        Ok(data::checks(context)?)
    }
}
