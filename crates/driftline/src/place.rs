//! Where the data is, as every verb that looks at data is told: a data directory, a
//! PostgreSQL database with its objects, or a server that has either.
//!
//! A question about a directory is answered by the process that holds it, through
//! its socket, and by this process when nobody does; a database is asked directly.
//! Invariants: looking makes nothing, neither a directory nor a schema; at most one
//! process holds a directory, any number hold a database.

pub mod alone;
mod calls;
pub mod directory;
pub mod holder;
pub mod lease_keeper;
pub mod link_index;
pub mod open;
pub mod search_index;
mod secrets;
mod server;
mod session;
pub mod temporary;

use crate::text::{quoted, shown};
use crate::{catalog, stderr};
use anyhow::{Context, bail, ensure};
use clap::Args as ClapArgs;
use directory::default_data;
pub use directory::{Data, existing};
use holder::is_in_use;
pub use open::OpenPlace;
pub use secrets::Secrets;
use server::ServerAddress;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::datadir::Layout;
use store::objects::{Location, Objects, S3Settings};
use store::tables::settings;
use store::{Db, clock, migrate};

/// Bytes of a file with keys that are read.
const KEYS_BYTES_MAX: u64 = 4_096;

/// How often a change is tried while a process holds the directory and does not listen.
const TRIES_MAX: u32 = 30;
/// The wait between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// What every verb that looks at data takes.
#[derive(ClapArgs)]
pub struct Place {
    #[command(flatten)]
    data: Data,
    /// Use a PostgreSQL database instead of a data directory
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    database: Option<String>,
    /// Location of the database's objects: file:///directory or s3://bucket/prefix
    #[arg(long, value_name = "PLACE", requires = "database")]
    objects: Option<String>,
    #[command(flatten)]
    s3: S3,
    #[command(flatten)]
    secrets: Secrets,
    #[command(flatten)]
    server: ServerAddress,
}

/// How to reach a bucket.
#[derive(ClapArgs)]
pub struct S3 {
    /// URL of an S3-compatible server other than AWS
    #[arg(long, value_name = "URL")]
    s3_endpoint: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "NAME")]
    s3_region: Option<String>,
    /// File with two lines, the access key id and the secret key; without it, the role of this
    /// machine is used
    #[arg(long, value_name = "FILE")]
    s3_keys: Option<PathBuf>,
}

impl Place {
    /// Whether to answer in JSON.
    pub fn json(&self) -> bool {
        self.data.json
    }

    /// Whether a server is asked.
    pub fn is_server(&self) -> bool {
        self.server.is_named()
    }

    /// The data directory, unless something else was named.
    pub fn directory(&self) -> Option<&Path> {
        (self.database.is_none() && !self.server.is_named()).then(|| self.data.root())
    }

    /// Whether it is a directory that is not there yet.
    pub fn is_absent(&self) -> bool {
        let is_missing = |root: &Path| {
            let found = std::fs::metadata(Layout::new(root).database());
            found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        self.directory().is_some_and(is_missing)
    }

    /// A name for messages, fit for a terminal.
    pub fn name(&self) -> String {
        match self.directory() {
            Some(root) => shown(&root.display().to_string()),
            None if self.server.is_named() => "the server".to_owned(),
            None => "the database".to_owned(),
        }
    }

    /// The flags that name this place again, for a command that is suggested. They
    /// begin with a space, and are empty for the default directory. A database's URL
    /// may have a password in it and is not repeated.
    pub fn flags(&self) -> String {
        match self.directory() {
            None if self.server.is_named() => self.server.flags(),
            None => " --database URL".to_owned(),
            Some(root) if root == default_data() => String::new(),
            Some(root) => format!(" --data {}", quoted(&root.display().to_string())),
        }
    }

    /// The rows, to look at; beside a process that holds them, if there is one.
    pub fn rows(&self) -> anyhow::Result<Db> {
        self.server.is_not_named()?;
        let db = match &self.database {
            Some(url) => self.secrets.of(open_postgres(url)?)?,
            None => self.data.existing()?.open_rows()?,
        };
        migrate::check(&db)?;
        Ok(db)
    }

    /// The objects of data that is there already.
    pub fn objects(&self) -> anyhow::Result<Objects> {
        let location = self.location()?;
        if let Location::Directory(path) = &location {
            ensure!(
                path.is_dir(),
                "there is no directory {} for the objects; check --objects",
                shown(&path.display().to_string())
            );
        }
        Ok(Objects::open(&location)?)
    }

    /// Whether it is known where the objects are.
    pub fn has_objects(&self) -> bool {
        self.database.is_none() || self.objects.is_some()
    }

    /// Where the objects are.
    pub fn location(&self) -> anyhow::Result<Location> {
        self.server.is_not_named()?;
        match (&self.database, &self.objects) {
            (None, _) => Ok(Location::Directory(self.data.layout().objects())),
            (Some(_), Some(place)) => self.s3.location(place),
            (Some(_), None) => bail!(
                "the objects of a database are stored outside it; give their location with \
                 --objects, such as --objects s3://bucket/prefix or --objects file:///directory"
            ),
        }
    }

    /// Where the stores of this place listen: no crawl may go there.
    pub fn addresses(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let mut found = match &self.database {
            Some(url) => Db::postgres_addresses(url)?,
            None => Vec::new(),
        };
        if let Some(endpoint) = &self.s3.s3_endpoint
            && let Ok(url) = page::url::canonical(endpoint, &page::url::Policy::NOTHING)
        {
            let host = page::url::host_of(&url).trim_matches(['[', ']']);
            found.extend((host, page::url::port_of(&url)).to_socket_addrs().into_iter().flatten());
        }
        Ok(found)
    }

    /// Opens what is there already, to work on it.
    pub fn hold(&self) -> anyhow::Result<OpenPlace> {
        self.server.is_not_named()?;
        match &self.database {
            None => {
                self.data.existing()?;
                self.hold_directory(settings::PARTS_DEFAULT)
            }
            Some(_) => {
                let db = self.rows()?;
                secrets::reseal(&db)?;
                Ok(OpenPlace::of_database(db, self.objects()?))
            }
        }
    }

    /// Opens the place to work on it, and makes or upgrades it first. `parts` counts
    /// only for a new one.
    pub fn hold_or_make(&self, parts: u32) -> anyhow::Result<OpenPlace> {
        let Some(url) = &self.database else { return self.hold_directory(parts) };
        settings::check_parts(parts)?;
        let location = self.location()?;
        let db = self.secrets.of(open_postgres(url)?)?;
        migrate::migrate(&db, clock::now_ms())?;
        db.write(move |tx| settings::freeze(tx, parts))?;
        secrets::reseal(&db)?;
        catalog::register_new(&db, clock::now_ms())?;
        Ok(OpenPlace::of_database(db, Objects::open(&location)?))
    }

    /// Opens the place for a process that stays. A verb that has the directory for a moment
    /// is waited for; whoever works on it listens, and is not.
    pub fn patiently(
        &self,
        hold: impl Fn(&Place) -> anyhow::Result<OpenPlace>,
    ) -> anyhow::Result<OpenPlace> {
        let listens = || matches!(self.holder(), Ok(Some(_)));
        let mut tries = 0;
        loop {
            tries += 1;
            match hold(self) {
                Err(error) if tries < TRIES_MAX && is_in_use(&error) && !listens() => {
                    std::thread::park_timeout(TRY_AGAIN);
                }
                held => return held,
            }
        }
    }

    /// Says so if others can look into the data directory. What is made in it is its owner's alone,
    /// but names and sizes can be seen, and what lay there before stays as it is.
    pub fn warn_if_open(&self) {
        let Some(root) = self.directory() else { return };
        if let Some(mode) = Layout::new(root).open_to_others() {
            let root = root.display();
            let words = format!(
                "other users can read {root} (mode {mode:o}); restrict it with: chmod 700 {root}"
            );
            stderr::notice("warn", &words);
        }
    }

    fn hold_directory(&self, parts: u32) -> anyhow::Result<OpenPlace> {
        self.server.is_not_named()?;
        let layout = Layout::new(self.data.root());
        let existed = layout.exists();
        let held = OpenPlace::open(self.data.root(), parts)?;
        if !existed {
            self.warn_if_open();
        }
        Ok(held)
    }
}

impl S3 {
    /// Reads a place for objects, with these settings if it is a bucket.
    pub fn location(&self, place: &str) -> anyhow::Result<Location> {
        let keys = self.s3_keys.as_deref().map(read_keys).transpose()?;
        let (endpoint, region) = (self.s3_endpoint.clone(), self.s3_region.clone());
        Ok(Location::parse(place, &S3Settings { endpoint, region, keys })?)
    }
}

fn open_postgres(url: &str) -> anyhow::Result<Db> {
    Db::open_postgres(url).context(
        "cannot open the database given with --database; it must be running and must exist",
    )
}

/// Keys come from a file: everybody on the machine can see a command line.
fn read_keys(path: &Path) -> anyhow::Result<(String, String)> {
    use std::io::Read;
    let mut text = String::new();
    let name = shown(&path.display().to_string());
    std::fs::File::open(path)
        .and_then(|file| file.take(KEYS_BYTES_MAX).read_to_string(&mut text))
        .with_context(|| format!("cannot read {name}, the file given with --s3-keys"))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match (lines.next(), lines.next(), lines.next()) {
        (Some(id), Some(secret), None) => Ok((id.to_owned(), secret.to_owned())),
        _ => bail!("{name} must have two lines, the key's id and its secret"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct PlaceCommand {
        #[command(flatten)]
        place: Place,
    }

    fn place(args: &[&str]) -> Result<Place, String> {
        let line = [&["driftline"], args].concat();
        PlaceCommand::try_parse_from(line).map(|line| line.place).map_err(|error| error.to_string())
    }

    #[test]
    fn a_directory_is_the_default_and_excludes_a_database() {
        assert_eq!(place(&[]).unwrap().directory(), Some(Path::new("driftline-data")));
        assert!(place(&["--data", "a", "--database", "postgres://x"]).is_err());
        assert!(place(&["--objects", "x"]).is_err_and(|error| error.contains("--database")));
    }

    #[test]
    fn a_suggested_command_names_the_place_but_no_password() {
        assert_eq!(place(&[]).unwrap().flags(), "");
        assert_eq!(place(&["--data", "a"]).unwrap().flags(), " --data a");
        let database = place(&["--database", "postgres://me:hunter2@db/x"]).unwrap();
        assert!(!database.flags().contains("hunter2") && database.flags().contains("--database"));
    }

    #[test]
    fn a_database_needs_its_objects_where_objects_are_needed() {
        let database = place(&["--database", "postgres://x"]).unwrap();
        assert!(database.location().unwrap_err().to_string().contains("--objects"));
        let served = place(&[
            "--database",
            "postgres://u@127.0.0.1/d",
            "--objects",
            "s3://b/p",
            "--s3-endpoint",
            "http://127.0.0.1:9000",
        ])
        .unwrap();
        let own: Vec<SocketAddr> =
            ["127.0.0.1:5432", "127.0.0.1:9000"].iter().map(|at| at.parse().unwrap()).collect();
        assert_eq!(served.addresses().unwrap(), own, "where no crawl may go");
        let missing = place(&["--database", "postgres://x", "--objects", "no/such"]).unwrap();
        let error = missing.objects().err().expect("it is not there").to_string();
        assert!(error.contains("no/such") && error.contains("--objects"), "{error}");
    }
}
