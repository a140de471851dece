//! How many files this process may have open: connections, tables and objects are all files.
//!
//! The usual soft limit of 1,024 is meant for programs that watch their files with `select`; the hard
//! one is what counts. Invariant: connections of a crawl leave room for the files of the stores, as far
//! as there is any.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::Error;

/// Files that a process asks for: more than it ever has connections and tables.
const WANTED: u64 = 16_384;
/// Files of tables, objects and logs that are open at the same time, at most about.
const OTHERS: u64 = 400;

/// Raises the limit as far as this user may, up to what is wanted.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(WANTED).min(WANTED);
    if current.is_some_and(|current| current < wanted) {
        // Without it there are fewer connections; `doctor` says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Connections that a crawl may have open, of those it would like to have.
pub fn connections(wanted: usize) -> usize {
    connections_within(wanted, getrlimit(Resource::Nofile).current)
}

fn connections_within(wanted: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else { return wanted };
    let room = limit.saturating_sub(OTHERS).max(limit / 4).max(1);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

/// Whether an error says that no further file can be opened.
pub fn is_out_of(error: &Error) -> bool {
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|it| number == Some(it.raw_os_error()))
}

/// Whether no further file can be opened now.
pub fn are_used_up() -> bool {
    File::open("/dev/null").is_err_and(|error| is_out_of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_other_files() {
        assert_eq!(connections_within(512, None), 512);
        assert_eq!(connections_within(512, Some(16_384)), 512);
        assert_eq!(connections_within(512, Some(1_024)), 512);
        assert_eq!(connections_within(512, Some(800)), 400);
        assert_eq!(connections_within(512, Some(256)), 64);
        assert_eq!(connections_within(512, Some(0)), 1);
    }

    #[test]
    fn running_out_is_told_from_other_trouble() {
        assert!(is_out_of(&Error::from_raw_os_error(Errno::MFILE.raw_os_error())));
        assert!(!is_out_of(&Error::from(std::io::ErrorKind::NotFound)));
        assert!(!are_used_up());
    }
}
