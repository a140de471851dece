//! A PostgreSQL server for one test, which may stop it and start it again. Its database is
//! as empty as a new user's.
//!
//! Invariant: it is a child of the test and does not outlive it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use store::Db;
use store::testing::skipped;

use super::{GLANCE, PATIENCE, text};

/// Runs its arguments as somebody who may run PostgreSQL, which root may not.
const AS_SERVER: &str = r#"
    [ "$(id -u)" = 0 ] || exec "$@"
    user=postgres; id "$user" >/dev/null 2>&1 || user=nobody
    chown "$user" "$FOLDER"
    exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@""#;

/// A PostgreSQL server of its own.
pub struct Server {
    folder: tempfile::TempDir,
    bin: PathBuf,
    child: Option<Child>,
}

impl Server {
    /// A server that runs, or a line that says why there is none.
    pub fn start() -> Option<Server> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let found = Command::new(root.join("scripts/postgres-bin")).output().ok();
        let Some(found) = found.filter(|it| it.status.success() && !it.stdout.is_empty()) else {
            skipped("a PostgreSQL that is restarted: its programs are not here");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("drift").tempdir_in("/tmp").unwrap();
        let bin = PathBuf::from(text(&found.stdout).trim());
        let mut server = Server { folder, bin, child: None };
        let data = server.data();
        let made = server
            .program("initdb")
            .args(["-U", "driftline", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"])
            .arg("-D")
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        server.resume();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("pg")
    }

    pub fn url(&self) -> String {
        format!("host={} user=driftline dbname=postgres", self.folder.path().display())
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", AS_SERVER, "sh"]).arg(self.bin.join(name));
        command.env("FOLDER", self.folder.path()).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    /// Starts it, and waits until it answers.
    pub fn resume(&mut self) {
        let sockets = self.folder.path().display().to_string();
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).args(["-k", &sockets, "-h", "", "-F"]);
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let began = Instant::now();
        while Db::open_postgres(&self.url()).is_err() {
            assert!(began.elapsed() < PATIENCE, "the server does not answer");
            std::thread::park_timeout(GLANCE);
        }
    }

    /// Stops it: `INT` in order, `QUIT` at once.
    pub fn stop(&mut self, signal: &str) {
        let mut child = self.child.take().unwrap();
        let script = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.stop("QUIT");
        }
    }
}
