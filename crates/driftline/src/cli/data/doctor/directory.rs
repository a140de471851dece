//! The data directory and the disk under it: whose it is, how much room there is, how
//! fast it syncs, and whether its socket can be reached.
//!
//! It writes one small file and removes it. A directory that is not there yet is
//! judged by the place where it would be made.

use crate::text::{shown, size, span};
use crate::verbs::doctor::check::{Advice, Check, Measure};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;
use store::datadir::Layout;
use store::disk::{self, DiskSpace};

/// Free bytes that a crawl likes to have, and below which it would soon stop.
const FREE_BYTES: (u64, u64) = (5 << 30, disk::RESERVE_BYTES);
/// The same in percent of the disk.
const FREE_PERCENT: (u64, u64) = (10, 5);
/// Free inodes that a crawl likes to have, and below which it would soon stop.
const FREE_INODES: (u64, u64) = (100_000, 1_000);
/// A sync that takes longer makes every commit slow.
const SYNC_SLOW_MS: i64 = 50;
/// A sync that takes longer is a broken disk.
const SYNC_BROKEN_MS: i64 = 2_000;
/// Syncs that are timed; the one in the middle counts.
const SYNCS: usize = 5;
/// Bytes that are written for each.
const SYNC_BYTES: usize = 4_096;
/// A log this large says that something keeps SQLite from shortening it.
const WAL_BYTES_MAX: u64 = 1 << 30;
/// The longest path that a socket can have by itself; see `store::socket`.
const SOCKET_BYTES_MAX: usize = 100;
/// A file's time may be so much before the clock's.
const SKEW_MS_MAX: i64 = 2_000;
/// Looking and writing may take so long.
const WRITING_MS_MAX: i64 = 10 * 60 * 1_000;

/// Looks at a data directory.
pub fn checks(layout: &Layout, now_ms: i64) -> Vec<Check> {
    let there = layout.exists();
    let root = nearest(layout.root());
    let mut out = vec![presence(layout, there)];
    if there {
        out.push(permissions(layout.root()));
    }
    out.extend(room(&root));
    out.extend(sync(&root, now_ms));
    out.push(socket(layout));
    if there {
        out.push(log(layout));
    }
    out
}

/// The directory, or what is there of the way to it.
fn nearest(root: &Path) -> PathBuf {
    let mut path = root;
    while !path.exists() {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => path = parent,
            _ => return PathBuf::from("."),
        }
    }
    path.to_owned()
}

fn presence(layout: &Layout, there: bool) -> Check {
    const NAME: &str = "directory";
    let root = shown(&layout.root().display().to_string());
    if there {
        return Check::ok(NAME, root);
    }
    let help = Advice {
        why: "rows and objects are kept there",
        next: "choose another with --data, or start a crawl: driftline crawl URL",
    };
    Check::warn(NAME, format!("{root} does not exist yet"), help)
}

fn permissions(root: &Path) -> Check {
    const NAME: &str = "permissions";
    let Ok(metadata) = root.metadata() else {
        let help = Advice {
            why: "it holds everything",
            next: "check the owner and mode of the directory and its parents",
        };
        return Check::fail(NAME, "the directory cannot be inspected", help);
    };
    let mode = metadata.permissions().mode() & 0o777;
    let what = format!("mode {mode:03o}, owner {}", metadata.uid());
    if mode & 0o077 == 0 {
        return Check::ok(NAME, what);
    }
    let help = Advice {
        why: "it may hold cookies, tokens and private pages, and other users can read it",
        next: "restrict it: chmod 700 on the directory",
    };
    Check::warn(NAME, what, help)
}

fn room(root: &Path) -> Vec<Check> {
    let Ok(found) = disk::room(root) else {
        return vec![Check::skip("disk space", "the file system does not report its free space")];
    };
    let inodes = match found.free_files {
        None => Check::ok("inodes", "no limit on the number of files"),
        Some(free) => Check::at_least(
            "inodes",
            Measure { found: free, well: FREE_INODES.0, least: FREE_INODES.1 },
            format!("{free} free"),
            Advice {
                why: "every object is a file",
                next: "remove small files, or pack fact files with: driftline gc",
            },
        ),
    };
    vec![space(found), inodes]
}

fn space(found: DiskSpace) -> Check {
    const NAME: &str = "disk space";
    let bytes = |count: u64| size(i64::try_from(count).unwrap_or(i64::MAX));
    let percent = found.free_percent();
    let what = format!("{} free of {}, {percent} %", bytes(found.free_bytes), bytes(found.bytes));
    let help = Advice {
        why: "a crawl pauses while less than 5 % or 900 MB are free, and a full disk stops every commit",
        next: "free space, or move the data with: driftline copy",
    };
    let least = percent >= FREE_PERCENT.1 && found.free_bytes >= FREE_BYTES.1;
    let well = percent >= FREE_PERCENT.0 && found.free_bytes >= FREE_BYTES.0;
    match (least, well) {
        (true, true) => Check::ok(NAME, what),
        (true, false) => Check::warn(NAME, what, help),
        (false, _) => Check::fail(NAME, what, help),
    }
}

/// Writes and syncs a small file a few times; also compares its time with the clock's.
fn sync(root: &Path, now_ms: i64) -> Vec<Check> {
    let path = root.join(format!(".driftline-doctor-{}", std::process::id()));
    let timed = time_syncs(&path);
    let modified_ms = path.metadata().ok().map(|metadata| {
        metadata.mtime().saturating_mul(1_000).saturating_add(metadata.mtime_nsec() / 1_000_000)
    });
    let _ = std::fs::remove_file(&path);
    let middle_ms = match timed {
        Ok(middle_ms) => middle_ms,
        Err(error) => {
            let what = format!("{} cannot be written: {error}", shown(&root.display().to_string()));
            let help = Advice {
                why: "nothing can be stored",
                next: "check its owner and mode, and that the file system is not read-only",
            };
            return vec![Check::fail("writing", what, help)];
        }
    };
    let help = Advice {
        why: "every commit waits for a sync",
        next: "use a local disk, preferably an SSD",
    };
    let what = format!("a sync takes {}", span(middle_ms));
    let latency = match middle_ms {
        SYNC_BROKEN_MS.. => Check::fail("sync time", what, help),
        SYNC_SLOW_MS.. => Check::warn("sync time", what, help),
        _ => Check::ok("sync time", what),
    };
    let writing = Check::ok("writing", "files can be created and synced");
    vec![writing, latency, file_times(modified_ms, now_ms)]
}

fn time_syncs(path: &Path) -> std::io::Result<i64> {
    let mut file = File::create_new(path)?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let began = Instant::now();
        file.write_all(&[0; SYNC_BYTES])?;
        file.sync_data()?;
        took.push(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    }
    took.sort_unstable();
    Ok(took[SYNCS / 2])
}

fn file_times(modified_ms: Option<i64>, now_ms: i64) -> Check {
    const NAME: &str = "file times";
    let Some(modified_ms) = modified_ms else {
        return Check::skip(NAME, "the file system does not report them");
    };
    // The file was written after the clock was read; how long after is not its fault.
    let behind_ms = now_ms.saturating_sub(modified_ms);
    if !(-WRITING_MS_MAX..=SKEW_MS_MAX).contains(&behind_ms) {
        let what =
            format!("they differ from the system clock by {}", span(behind_ms.saturating_abs()));
        let help = Advice {
            why: "gc uses file times to decide which files are old",
            next: "synchronise the clocks of this machine and its file server",
        };
        return Check::warn(NAME, what, help);
    }
    Check::ok(NAME, "they agree with the system clock")
}

fn socket(layout: &Layout) -> Check {
    const NAME: &str = "socket";
    let bytes = layout.socket().as_os_str().len();
    if bytes <= SOCKET_BYTES_MAX {
        return Check::ok(NAME, format!("its path has {bytes} bytes"));
    }
    if Path::new("/proc/self/fd").is_dir() {
        let what = format!("its path has {bytes} bytes, so it is reached through /proc");
        return Check::ok(NAME, what);
    }
    let help = Advice {
        why: "other commands could not query a running crawl",
        next: "use a data directory with a shorter path",
    };
    Check::fail(NAME, format!("its path has {bytes} bytes, more than {SOCKET_BYTES_MAX}"), help)
}

fn log(layout: &Layout) -> Check {
    const NAME: &str = "write-ahead log";
    let mut path = layout.database().into_os_string();
    path.push("-wal");
    let bytes = Path::new(&path).metadata().map_or(0, |metadata| metadata.len());
    let what = size(i64::try_from(bytes).unwrap_or(i64::MAX));
    if bytes <= WAL_BYTES_MAX {
        return Check::ok(NAME, what);
    }
    let help = Advice {
        why: "it takes space and slows reads; a reader keeps it from being truncated",
        next: "close programs that have the database open, then run: driftline verify --quick",
    };
    Check::warn(NAME, what, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::check::CheckStatus;

    #[test]
    fn a_directory_that_is_not_there_is_judged_by_its_place() {
        let place = tempfile::tempdir().unwrap();
        let found = checks(&Layout::new(place.path().join("a/b")), store::clock::now_ms());
        assert_eq!((found[0].name.as_str(), found[0].verdict), ("directory", CheckStatus::Warn));
        assert!(found[1..].iter().all(|check| check.verdict != CheckStatus::Fail), "{found:?}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left");
        assert_eq!(nearest(Path::new("no/such/place")), Path::new("."));
    }

    #[test]
    fn open_doors_odd_times_and_long_paths_are_told() {
        let place = tempfile::tempdir().unwrap();
        for (mode, verdict) in [(0o700, CheckStatus::Ok), (0o750, CheckStatus::Warn)] {
            std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(permissions(place.path()).verdict, verdict);
        }
        let hour_ms = 3_600_000;
        assert_eq!(file_times(Some(hour_ms), hour_ms).verdict, CheckStatus::Ok);
        for modified_ms in [0, 3 * hour_ms] {
            assert_eq!(file_times(Some(modified_ms), hour_ms).verdict, CheckStatus::Warn);
        }
        assert_eq!(socket(&Layout::new("d")).verdict, CheckStatus::Ok);
    }

    #[test]
    fn a_disk_must_have_room_in_bytes_and_in_percent() {
        let of = |free_bytes: u64, bytes: u64| {
            space(DiskSpace { free_bytes, bytes, free_files: None }).verdict
        };
        assert_eq!(of(50 << 30, 100 << 30), CheckStatus::Ok);
        assert_eq!(of(7 << 30, 100 << 30), CheckStatus::Warn);
        assert_eq!(of(2 << 30, 4 << 30), CheckStatus::Warn);
        assert_eq!(of(4 << 30, 100 << 30), CheckStatus::Fail);
        assert_eq!(of(100 << 20, 200 << 20), CheckStatus::Fail);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_a_failure() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let found = sync(&file, 0);
        assert_eq!((found[0].name.as_str(), found[0].verdict), ("writing", CheckStatus::Fail));
    }
}
