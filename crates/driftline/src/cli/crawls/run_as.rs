//! Who a process runs as: what `serve` and `work` say to root, and `--user`, which gives up
//! root's rights.
//!
//! Invariants: rights are given up before anything is opened and before any thread starts, by
//! the C library's calls, which hold for the whole process; a process that could get them back
//! ends instead.

use anyhow::{Context, bail, ensure};
use nix::unistd::{self, Gid, Uid, User};

/// What root is told.
pub const ROOT: &str = "this process runs as root: whoever takes it over controls the whole \
     machine, and jobs can read every file";
/// What root can do about it.
pub const NOT_ROOT: &str = "start it as a dedicated user, or with --user NAME";

/// The user that a process of root goes on as.
#[derive(clap::Args)]
pub struct RunAs {
    /// When started as root: drop root privileges first and continue as this user, given as a name,
    /// UID or UID:GID; the user must own the data directory and the key files
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

impl RunAs {
    /// Goes on as the user that was named. If that leaves it with root, the answer is a warning.
    pub fn begin(&self) -> anyhow::Result<Option<String>> {
        let is_root = unistd::geteuid().is_root();
        match &self.user {
            Some(user) => {
                ensure!(
                    is_root,
                    "only root can switch to another user, and this process runs as {}; omit \
                     --user, or start it as root",
                    unistd::geteuid()
                );
                give_up_root(named(user)?)?;
                Ok(None)
            }
            None => Ok(is_root.then(|| format!("{ROOT}; {NOT_ROOT}"))),
        }
    }
}

/// A user, with the only group of theirs that a process keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    user: Uid,
    group: Gid,
}

/// The user of a name or of numbers.
fn named(text: &str) -> anyhow::Result<Identity> {
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    let identity = match (user.parse(), group) {
        (Ok(user), Some(group)) => {
            let group = group.parse().ok().context("a group must be a number: UID:GID")?;
            Identity { user: Uid::from_raw(user), group: Gid::from_raw(group) }
        }
        (Err(_), Some(_)) => bail!("--user takes a name, a UID or UID:GID"),
        (Ok(user), None) => known(User::from_uid(Uid::from_raw(user)), || {
            format!("no user on this machine has UID {user}; give the group too: {user}:GID")
        })?,
        (Err(_), None) => known(User::from_name(user), || {
            format!(
                "there is no user {} on this machine; see /etc/passwd",
                crate::text::shown(user)
            )
        })?,
    };
    ensure!(!identity.user.is_root(), "--user must name a user other than root");
    Ok(identity)
}

fn known(
    found: nix::Result<Option<User>>,
    unknown: impl FnOnce() -> String,
) -> anyhow::Result<Identity> {
    let found = found.context("cannot look up the users of this machine")?;
    let Some(found) = found else { bail!(unknown()) };
    Ok(Identity { user: found.uid, group: found.gid })
}

/// Groups first: only root may change them.
fn give_up_root(Identity { user, group }: Identity) -> anyhow::Result<()> {
    unistd::setgroups(&[])
        .and_then(|()| unistd::setresgid(group, group, group))
        .and_then(|()| unistd::setresuid(user, user, user))
        .with_context(|| format!("cannot switch to user {user} and group {group}"))?;
    let is_back = unistd::setuid(Uid::from_raw(0)).is_ok();
    ensure!(!is_back, "this process could regain root privileges, so it exits");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        named(text).unwrap_err().to_string()
    }

    #[test]
    fn a_user_is_named_or_numbered() {
        let identity =
            |user, group| Identity { user: Uid::from_raw(user), group: Gid::from_raw(group) };
        assert_eq!(named("1234:567").unwrap(), identity(1234, 567));
        if let Ok(Some(nobody)) = User::from_name("nobody") {
            let nobody = identity(nobody.uid.as_raw(), nobody.gid.as_raw());
            assert_eq!(named("nobody").unwrap(), nobody);
            assert_eq!(named(&nobody.user.to_string()).unwrap(), nobody);
        }
    }

    #[test]
    fn a_user_that_is_not_known_or_is_root_is_refused_with_what_to_do() {
        assert!(reason("no-such-user").contains("there is no user no-such-user"));
        assert!(reason("3999999999").contains("3999999999:GID"));
        assert!(reason("nobody:nogroup").contains("UID:GID"));
        assert!(reason("12:x").contains("UID:GID"));
        for root in ["0:0", "0:100"] {
            assert!(reason(root).contains("a user other than root"), "{root}");
        }
    }
}
