//! A data directory, as it is named on a command line.

use crate::text::shown;
use clap::Args as ClapArgs;
use std::path::{Path, PathBuf};
use store::datadir::Layout;

/// What every verb about a data directory takes.
#[derive(ClapArgs)]
pub struct Data {
    /// Data directory; the variable DRIFTLINE_DATA changes the default
    #[arg(long, value_name = "DIR", default_value_os_t = default_data())]
    data: PathBuf,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

impl Data {
    pub fn root(&self) -> &Path {
        &self.data
    }

    pub fn layout(&self) -> Layout {
        Layout::new(&self.data)
    }

    /// The layout of a directory that must be there.
    pub fn existing(&self) -> anyhow::Result<Layout> {
        existing(&self.data)
    }
}

/// The variable of the environment that names the data directory.
const DATA_VARIABLE: &str = "DRIFTLINE_DATA";

/// The data directory of a command line that names none. A default, and not a value from the
/// environment, so that it is no contradiction to `--database`.
pub fn default_data() -> PathBuf {
    let named = std::env::var_os(DATA_VARIABLE).filter(|it| !it.is_empty());
    named.map_or_else(|| PathBuf::from("driftline-data"), PathBuf::from)
}

/// The layout of a data directory that must be there.
pub fn existing(root: &Path) -> anyhow::Result<Layout> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let layout = Layout::new(root);
    let name = shown(&root.display().to_string());
    match std::fs::metadata(layout.database()) {
        Ok(file) if file.is_file() => Ok(layout),
        Err(error) if !matches!(error.kind(), NotFound | NotADirectory) => anyhow::bail!(
            "the data directory {name} cannot be read: {error}; run this as the user who created \
             it, or ask its owner for permission"
        ),
        _ => anyhow::bail!(
            "there is no data directory at {name}; choose another with --data, or create one \
             with: driftline init --data {name}"
        ),
    }
}
