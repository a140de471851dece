//! The key of a database's secrets, as a verb is told of it. A data directory has its own.

use clap::Args as ClapArgs;
use std::path::PathBuf;
use store::Db;
use store::sealing::Keys;
use store::tables::connections;

/// Where the key is.
#[derive(ClapArgs)]
pub struct Secrets {
    /// File with the key that encrypts passwords in the database; a data directory has its own
    #[arg(long, value_name = "FILE", env = "DRIFTLINE_SECRETS_KEY")]
    secrets_key: Option<PathBuf>,
}

impl Secrets {
    /// A database with the key, if there is one.
    pub fn of(&self, db: Db) -> anyhow::Result<Db> {
        Ok(match &self.secrets_key {
            Some(path) => {
                store::ours::claim(path);
                db.with_keys(Keys::of_file(path)?)
            }
            None => db,
        })
    }
}

/// Seals what is stored in the open, or with an older key.
pub fn reseal(db: &Db) -> store::Result<()> {
    let keys = db.keys().clone();
    if keys.can_seal() {
        db.write(move |tx| connections::reseal(tx, &keys))?;
    }
    Ok(())
}
