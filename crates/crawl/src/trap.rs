//! URLs whose shape tells of pages without end: calendars, links that add the
//! same step again and again, parameters piled up.
//!
//! Pure and cheap: it is asked of every new link. Budgets by host and pattern, which
//! need to count, are in `budget`. The limits are those that have served archives for
//! twenty years; a page that a seed names is never judged by its shape.

use page::url::path_of;

/// Steps of a path.
const SEGMENTS_MAX: usize = 20;
/// Times that one step of a path may follow itself, or come back in turns.
const REPEATS_MAX: usize = 2;
/// Parameters of a query.
const PARAMETERS_MAX: usize = 30;

/// What a URL looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// A path of very many steps.
    Deep,
    /// A path that repeats itself: `/a/a/a/` or `/a/b/a/b/a/b/`.
    Repeating,
    /// A query of very many parameters.
    Parameters,
}

impl Trap {
    /// The reason in words.
    pub fn explain(self) -> &'static str {
        match self {
            Trap::Deep => "its path has more than 20 steps, as endless pages have",
            Trap::Repeating => "its path repeats itself, as endless pages do",
            Trap::Parameters => "its query has more than 30 parameters, as endless pages have",
        }
    }
}

/// What trap a canonical URL looks like, if any.
pub fn shape(url: &str) -> Option<Trap> {
    let path_and_query = path_of(url);
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let segments: Vec<&str> =
        path.split('/').filter(|step| !step.is_empty()).take(SEGMENTS_MAX + 1).collect();
    if segments.len() > SEGMENTS_MAX {
        return Some(Trap::Deep);
    }
    if (1..=3).any(|period| repeats(&segments, period) > REPEATS_MAX) {
        return Some(Trap::Repeating);
    }
    if query.split('&').take(PARAMETERS_MAX + 1).count() > PARAMETERS_MAX {
        return Some(Trap::Parameters);
    }
    None
}

/// How often a group of `period` steps stands behind itself at most: 1 for once.
fn repeats(segments: &[&str], period: usize) -> usize {
    let mut longest = 1;
    let mut run = 0;
    for index in period..segments.len() {
        run = if segments[index] == segments[index - period] { run + 1 } else { 0 };
        longest = longest.max(1 + run / period);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Trap> {
        shape(&format!("https://example.com{path}"))
    }

    #[test]
    fn honest_paths_are_no_traps() {
        for path in [
            "/",
            "/a/b/c/d/e/f/g",
            "/2024/11/11/post",
            "/en/en/docs",
            "/a/b/a/b/c",
            "/x?a=1&b=2&c=3",
            "/img/img.html",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn endless_paths_are_seen() {
        assert_eq!(of("/a/a/a/"), Some(Trap::Repeating));
        assert_eq!(of("/x/cal/next/cal/next/cal/next"), Some(Trap::Repeating));
        assert_eq!(of("/a/b/c/a/b/c/a/b/c"), Some(Trap::Repeating));
        let deep: String = (0..21).map(|step| format!("/{step}")).collect();
        assert_eq!(of(&deep), Some(Trap::Deep));
        let piled: String = (0..31).map(|number| format!("p{number}=1&")).collect();
        assert_eq!(of(&format!("/x?{piled}")), Some(Trap::Parameters));
    }

    #[test]
    fn a_path_of_just_as_many_steps_as_allowed_is_fine() {
        let deep: String = (0..20).map(|step| format!("/{step}")).collect();
        assert_eq!(of(&deep), None);
    }
}
