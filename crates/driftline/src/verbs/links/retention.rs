//! Which lost links the link index keeps.
//!
//! Invariant: what is not named stays as it is; what is said is in force at the next sweep,
//! whichever process does it.

use crate::text::counted;
use crate::verbs::Change;
use crate::verbs::access::{Area, Needs};
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::{ChangeContext, ChangeResult};
use serde::{Deserialize, Serialize};
use store::tables::settings::{self, LostLinks};

/// Sets which lost links are kept.
pub struct SetRetention;

/// What is to be set.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionRequest {
    /// Days for which a lost link is kept.
    pub days: Option<u32>,
    /// Lost links that are kept of one target.
    pub per_target: Option<u32>,
}

impl Change for SetRetention {
    const NAME: &'static str = "links-retention";
    const NEEDS: Option<Needs> = Some(Needs::admin(Area::Administration));
    type Request = RetentionRequest;
    type Response = ChangeResult;

    fn carry_out(
        context: &ChangeContext,
        request: RetentionRequest,
    ) -> anyhow::Result<ChangeResult> {
        let (before, after) = context.db.write(move |tx| {
            let before = settings::lost_links(tx)?;
            let after = LostLinks {
                days: request.days.unwrap_or(before.days),
                per_target: request.per_target.unwrap_or(before.per_target),
            };
            settings::set_lost_links(tx, after)?;
            Ok((before, after))
        })?;
        let is_new = before != after;
        Ok(ChangeResult::done(is_new.then(|| sentence(after)).into_iter().collect()))
    }

    fn subject(_: &RetentionRequest) -> AuditSubject {
        AuditSubject::unnamed("lost-links", "set")
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }
}

/// What is kept, in a sentence.
pub fn sentence(kept: LostLinks) -> String {
    let days = match kept.days {
        0 => "for ever".to_owned(),
        days => format!("for {}", counted(days.into(), "day", "days")),
    };
    let many = match kept.per_target {
        0 => "all per target".to_owned(),
        many => format!("at most {many} per target"),
    };
    format!("lost links are kept {days}, {many}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::access::Asker;
    use crate::verbs::carry_out;
    use store::testing::both_databases;

    #[test]
    fn which_lost_links_are_kept_is_set_one_by_one_and_written_down() {
        both_databases(|db| {
            let context = ChangeContext::of_rows(db.clone());
            let set = |days, per_target| {
                let request = RetentionRequest { days, per_target };
                carry_out::<SetRetention>(&context, Asker::CommandLine, request).unwrap().changes
            };
            assert_eq!(
                set(Some(7), None),
                ["lost links are kept for 7 days, at most 1000 per target"]
            );
            assert_eq!(set(None, Some(0)), ["lost links are kept for 7 days, all per target"]);
            assert_eq!(set(Some(7), Some(0)), [""; 0]);
            assert_eq!(db.read(settings::lost_links)?, LostLinks { days: 7, per_target: 0 });
            Ok(())
        });
    }
}
