//! How documents reach an output when several jobs send them there.
//!
//! Invariant: a route depends on which jobs send a document and on how each does, not on
//! which of them commits; so jobs that take turns do not change each other's decisions.

use super::{Outlet, short};
use crate::ids::JobId;

/// The ways of a document to an output, and what stands for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The jobs whose ways are tried, by id: the first whose transformations do not refuse
    /// the document sends it.
    pub ways: Vec<JobId>,
    /// Stands for the output and what these jobs tell it.
    pub version: String,
    /// Stands for the transformations on these ways.
    pub transformations: String,
}

impl Route {
    /// The jobs as `ingests` keeps them.
    pub fn ways_text(&self) -> String {
        let words: Vec<String> = self.ways.iter().map(|job| job.0.to_string()).collect();
        words.join(" ")
    }

    /// The route of a document that these jobs send to one output; `None` if none does.
    pub fn new(mut ways: Vec<(JobId, &Outlet)>) -> Option<Route> {
        ways.sort_unstable_by_key(|(job, _)| *job);
        // Where nothing refuses a document, later ways are never tried.
        if let Some(last) = ways.iter().position(|(_, it)| it.transformations.is_empty()) {
            ways.truncate(last + 1);
        }
        let (_, first) = *ways.first()?;
        let is_alike = |(_, it): &(JobId, &Outlet)| {
            it.version == first.version && it.transformations == first.transformations
        };
        let all = |text: fn(&Outlet) -> &str| match ways.iter().all(is_alike) {
            true => text(first).to_owned(),
            false => {
                let texts: Vec<&str> = ways.iter().map(|(_, it)| text(it)).collect();
                short(&texts.join("\n"))
            }
        };
        Some(Route {
            version: all(|it| &it.version),
            transformations: all(|it| &it.transformations),
            ways: ways.iter().map(|(job, _)| *job).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionId;

    fn outlet(version: &str, transformations: &str) -> Outlet {
        Outlet {
            connection: ConnectionId(9),
            name: "out".into(),
            version: version.into(),
            transformations: transformations.into(),
            bodies: false,
            requisites: false,
            former: false,
        }
    }

    #[test]
    fn a_route_is_the_same_whichever_job_asks_and_ends_where_nothing_refuses() {
        let (plain, text) = (outlet("v", ""), outlet("v", "only text"));
        let route = |ways: &[(i64, &Outlet)]| {
            Route::new(ways.iter().map(|(job, it)| (JobId(*job), *it)).collect())
        };
        assert_eq!(route(&[]), None);
        let alone = route(&[(4, &plain)]).expect("one job sends it");
        assert_eq!((alone.version.as_str(), alone.transformations.as_str()), ("v", ""));
        assert_eq!(route(&[(7, &text), (4, &plain)]), Some(alone), "the first takes everything");
        let both = route(&[(7, &plain), (4, &text)]).expect("two jobs send it");
        assert_eq!(both.ways, [JobId(4), JobId(7)]);
        assert_eq!(route(&[(4, &text), (7, &plain), (9, &text)]), Some(both.clone()));
        assert_ne!(both.transformations, text.transformations);
        let twice = route(&[(4, &text), (7, &text)]).expect("two jobs send it alike");
        assert_eq!((twice.version.as_str(), twice.transformations.as_str()), ("v", "only text"));
    }
}
