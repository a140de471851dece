//! Finds the bad document in a batch by halving, for servers that refuse a whole batch
//! because of one.
//!
//! Invariants: every item has an outcome; a server that answers nothing but failures is
//! away, and no document is blamed for it.

use crate::output::{Outcome, Unavailable};
use std::ops::Range;

/// Failures in a row, of single documents and with no success between, after which the
/// server is to blame.
const BROKEN_MAX: usize = 3;

/// What a server says of a batch.
pub enum BatchOutcome {
    /// All of it is done.
    Done,
    /// Something in it is not acceptable, and all of it was left out.
    Refused {
        /// A word for the history.
        code: &'static str,
        /// A sentence for people.
        detail: String,
    },
    /// The server has failed at something in it, or altogether.
    Broken(Unavailable),
}

/// Sends items in batches of at most so many, and halves those that are refused.
/// `send` is given a range of them.
pub fn isolate(
    count: usize,
    most: usize,
    mut send: impl FnMut(Range<usize>) -> Result<BatchOutcome, Unavailable>,
) -> Vec<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; count];
    let most = most.max(1);
    let batches = (0..count).step_by(most).map(|begin| begin..(begin + most).min(count));
    let mut pending: Vec<Range<usize>> = batches.rev().collect();
    let (mut broken, mut unavailable) = (Vec::new(), None);
    while let Some(range) = pending.pop() {
        match send(range.clone()) {
            Ok(BatchOutcome::Done) => {
                broken.clear();
                outcomes[range].fill(Some(Outcome::Taken));
            }
            Ok(_) if range.len() > 1 => {
                let middle = range.start + range.len() / 2;
                pending.push(middle..range.end);
                pending.push(range.start..middle);
            }
            Ok(BatchOutcome::Refused { code, detail }) => {
                broken.clear();
                outcomes[range.start] = Some(Outcome::Rejected { code, detail });
            }
            Ok(BatchOutcome::Broken(why)) => {
                let trouble = Outcome::Trouble { code: "SERVER", detail: why.why.clone() };
                outcomes[range.start] = Some(trouble);
                broken.push(range.start);
                if broken.len() >= BROKEN_MAX {
                    // Those that met it first are not to blame either.
                    broken.iter().for_each(|at| outcomes[*at] = None);
                    unavailable = Some(why);
                    break;
                }
            }
            Err(why) => {
                unavailable = Some(why);
                break;
            }
        }
    }
    let unavailable = unavailable.unwrap_or_else(|| Unavailable::because("it was not asked"));
    outcomes
        .into_iter()
        .map(|it| it.unwrap_or_else(|| Outcome::Later(unavailable.clone())))
        .collect()
}

/// Outcomes, unless all of them are that the output is unavailable.
pub fn unless_unavailable(outcomes: Vec<Outcome>) -> Result<Vec<Outcome>, Unavailable> {
    let is_later = |it: &Outcome| matches!(it, Outcome::Later(_));
    match outcomes.first() {
        Some(Outcome::Later(unavailable)) if outcomes.iter().all(is_later) => {
            Err(unavailable.clone())
        }
        _ => Ok(outcomes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused() -> BatchOutcome {
        BatchOutcome::Refused { code: "BAD", detail: String::new() }
    }

    #[test]
    fn the_bad_ones_are_found_with_few_requests() {
        let bad = [3, 77];
        let mut requests = 0;
        let outcomes = isolate(100, 100, |range| {
            requests += 1;
            Ok(if bad.iter().any(|it| range.contains(it)) { refused() } else { BatchOutcome::Done })
        });
        for (at, outcome) in outcomes.iter().enumerate() {
            let is_rejected = matches!(outcome, Outcome::Rejected { code: "BAD", .. });
            assert_eq!(is_rejected, bad.contains(&at), "{at}");
        }
        assert!(requests < 30, "{requests}");
    }

    #[test]
    fn one_that_breaks_the_server_is_in_trouble_and_a_broken_server_is_away() {
        let broken = || BatchOutcome::Broken(Unavailable::because("500"));
        let one = isolate(8, 8, |range| {
            Ok(if range.contains(&5) { broken() } else { BatchOutcome::Done })
        });
        assert!(matches!(one[5], Outcome::Trouble { .. }));
        assert_eq!(one.iter().filter(|it| **it == Outcome::Taken).count(), 7);
        let all = isolate(8, 8, |_| Ok(broken()));
        assert!(all.iter().all(|it| matches!(it, Outcome::Later(_))), "{all:?}");
        assert_eq!(unless_unavailable(all), Err(Unavailable::because("500")));
    }

    #[test]
    fn what_was_taken_before_the_server_went_away_counts() {
        let mut asked = 0;
        let outcomes = isolate(6, 2, |_| {
            asked += 1;
            if asked < 3 { Ok(BatchOutcome::Done) } else { Err(Unavailable::because("gone")) }
        });
        assert_eq!(outcomes[..4], [const { Outcome::Taken }; 4]);
        assert!(matches!(outcomes[5], Outcome::Later(_)));
        assert_eq!(unless_unavailable(outcomes.clone()), Ok(outcomes));
    }

    proptest! {
        #[test]
        fn whatever_is_bad_every_item_is_sent_alone_or_taken(
            bad in proptest::collection::btree_set(0_usize..40, 0..40),
            (count, most) in (0_usize..40, 1_usize..15),
        ) {
            let outcomes = isolate(count, most, |range| {
                Ok(if range.clone().any(|at| bad.contains(&at)) { refused() } else { BatchOutcome::Done })
            });
            prop_assert_eq!(outcomes.len(), count);
            for (at, outcome) in outcomes.iter().enumerate() {
                let is_taken = *outcome == Outcome::Taken;
                prop_assert_eq!(is_taken, !bad.contains(&at));
            }
        }
    }
}
