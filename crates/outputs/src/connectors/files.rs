//! The files output: documents as files in a directory.

mod paths;
pub mod work;

use super::{base, read, written};
use crate::output::Output;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// Bytes of a directory's name.
const DIRECTORY_BYTES_MAX: usize = 4_096;

/// A files output's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// The absolute directory that the files go to.
    pub directory: String,
}

impl FilesConfig {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(self) -> Result<FilesConfig, String> {
        if self.directory.is_empty() {
            return Err("directory: name the directory for the files".to_owned());
        }
        if !self.directory.starts_with('/') || self.directory.len() > DIRECTORY_BYTES_MAX {
            return Err(format!(
                "directory: {:?} is not absolute; write it from the root on, such as /srv/out",
                self.directory
            ));
        }
        Ok(self)
    }
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Output>, String> {
    Ok(Box::new(work::FilesOutput::open(config)?))
}

/// Registers the output with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: &[ConfigField {
        name: "directory",
        about: "the absolute path of the directory for the files",
        example: "/srv/out",
        default: None,
        kind: SettingKind::Text,
    }],
    takes_bodies: true,
    takes_requisites: false,
    check_config: |text| written(&read::<FilesConfig>(text)?.check()?),
    ..base(ConnectionKind::Output, "files", "documents as files in a directory on this machine")
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_must_be_named_from_the_root_on() {
        let check = CONNECTOR.check_config;
        assert_eq!(check(r#"{"directory": "/out"}"#).unwrap(), r#"{"directory":"/out"}"#);
        for text in ["{}", r#"{"directory": "out"}"#, r#"{"directry": "/out"}"#] {
            assert!(check(text).unwrap_err().contains("direct"), "{text}");
        }
        assert!((CONNECTOR.check_spec)(r#"{"x": 1}"#).is_err());
    }
}
