//! The mirror output: a browsable copy of a site, published when a run ends.
//!
//! What is delivered goes into the mirror's journal; when a run is over, the journal becomes an
//! x-file, and the modules follow it (`crate::mirror`). Invariant: the mirror is held while it is
//! worked on only, so that another process can.

use super::{base, read, written};
use crate::mirror::spider::{Delivered, DeliveredContent, Role, deliver, publish};
use crate::mirror::{Mirror, MirrorSettings, Names, assembler, parser, reactor, sweep};
use crate::output::{Content, Operation, Outcome, Output, Unavailable, Wants};
use page::mirror::xfile;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use store::catalog::{ConfigField, Connector, SettingKind};
use store::chunkfile::document::DocumentRole;
use store::tables::connections::ConnectionKind;
use store::{Error, clock};

/// Bytes of a directory's name.
const DIRECTORY_BYTES_MAX: usize = 4_096;
/// Generations that may be kept; each needs the files that only it has.
const KEEP_MAX: u32 = 10_000;
/// Hours that requisites may stay that no page needs: ten years.
const GRACE_HOURS_MAX: u32 = 87_600;
const HOUR_MS: i64 = 3_600 * 1_000;
/// After how long a mirror is asked again that another process works on.
const BUSY_RETRY_MS: i64 = 5_000;

/// A mirror output's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MirrorConfig {
    /// The absolute directory of the mirror.
    pub directory: String,
    /// What pages are called.
    pub names: Names,
    /// Generations that are kept.
    pub keep: u32,
    /// Hours that requisites stay that no page needs any more.
    pub grace_hours: u32,
    /// Who answers for the mirror.
    pub editor: String,
    /// What is said of links to other sites; empty for nothing.
    pub outside_notice: String,
}

impl Default for MirrorConfig {
    fn default() -> MirrorConfig {
        MirrorConfig {
            directory: String::new(),
            names: Names::Hash,
            keep: 10,
            grace_hours: 24,
            editor: String::new(),
            outside_notice: String::new(),
        }
    }
}

impl MirrorConfig {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(self) -> Result<MirrorConfig, String> {
        if !self.directory.starts_with('/') || self.directory.len() > DIRECTORY_BYTES_MAX {
            return Err(format!(
                "directory: {:?} is not absolute; write it from the root on, such as /srv/mirror",
                self.directory
            ));
        }
        if self.keep == 0 || self.keep > KEEP_MAX {
            return Err(format!("keep: 1 to {KEEP_MAX} generations, not {}", self.keep));
        }
        if self.grace_hours > GRACE_HOURS_MAX {
            return Err(format!(
                "grace_hours: at most {GRACE_HOURS_MAX}, not {}",
                self.grace_hours
            ));
        }
        Ok(self)
    }

    fn settings(&self) -> MirrorSettings {
        MirrorSettings {
            names: self.names,
            keep: u64::from(self.keep),
            grace_ms: i64::from(self.grace_hours) * HOUR_MS,
            editor: self.editor.clone(),
            outside_notice: Some(self.outside_notice.clone()).filter(|it| !it.is_empty()),
            ..MirrorSettings::default()
        }
    }
}

/// Opens it.
pub fn open(config: &str) -> Result<Box<dyn Output>, String> {
    Ok(Box::new(MirrorOutput { config: read::<MirrorConfig>(config)?.check()? }))
}

/// A setting with what stands there otherwise.
const fn setting(
    name: &'static str,
    about: &'static str,
    example: &'static str,
    default: Option<&'static str>,
    kind: SettingKind,
) -> ConfigField {
    ConfigField { name, about, example, default, kind }
}

const fn up_to(least: u32, most: u32) -> SettingKind {
    SettingKind::Number { least: least as i64, most: most as i64 }
}

/// The connector.
pub const CONNECTOR: Connector = Connector {
    settings: &[
        setting(
            "directory",
            "the absolute directory of the mirror",
            "/srv/mirror",
            None,
            SettingKind::Text,
        ),
        setting(
            "names",
            "what pages are called: hash, or path for readable names",
            "path",
            Some("hash"),
            SettingKind::Choice(Names::WORDS),
        ),
        setting("keep", "generations that are kept", "30", Some("10"), up_to(1, KEEP_MAX)),
        setting(
            "grace_hours",
            "hours that styles, images and scripts stay that no page needs any more",
            "48",
            Some("24"),
            up_to(0, GRACE_HOURS_MAX),
        ),
        setting("editor", "who answers for the mirror", "webmaster", None, SettingKind::Text),
        setting(
            "outside_notice",
            "the title of links to other sites",
            "leaves this copy",
            None,
            SettingKind::Text,
        ),
    ],
    takes_bodies: true,
    takes_requisites: true,
    check_config: |text| written(&read::<MirrorConfig>(text)?.check()?),
    ..base(
        ConnectionKind::Output,
        "mirror",
        "a browsable copy of a site, updated as a whole after each run",
    )
};

struct MirrorOutput {
    config: MirrorConfig,
}

impl MirrorOutput {
    /// The mirror, which another connection of this process may have open.
    fn mirror(&self) -> Result<Arc<Mirror>, Unavailable> {
        let opened =
            Mirror::open_shared(Path::new(&self.config.directory), &self.config.settings());
        opened.map_err(|error| self.unavailable(&error))
    }

    fn unavailable(&self, error: &Error) -> Unavailable {
        let retry_ms = matches!(error, Error::Refused(_)).then_some(BUSY_RETRY_MS);
        let why = format!("mirror {} cannot be written: {error}", self.config.directory);
        Unavailable { why, retry_ms }
    }

    fn publish(&self, mirror: &Mirror, now_ms: i64) -> store::Result<()> {
        publish(mirror, xfile::Outcome::Complete, now_ms)?;
        parser::run(mirror)?;
        reactor::run(mirror, false)?;
        assembler::run(mirror, now_ms)?;
        sweep::sweep(mirror, now_ms).map(drop)
    }
}

impl Output for MirrorOutput {
    fn check(&mut self) -> Result<(), Unavailable> {
        self.mirror().map(drop)
    }

    fn wants(&self) -> Wants {
        Wants::Bytes
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> Result<Vec<Outcome>, Unavailable> {
        let mirror = self.mirror()?;
        let mut all = Vec::with_capacity(operations.len());
        let mut ends = Vec::with_capacity(operations.len());
        let mut rejected = Vec::new();
        for (at, operation) in operations.iter().enumerate() {
            let stale = operation.stale.iter().filter(|url| **url != operation.uri);
            all.extend(stale.map(|url| Delivered { url: url.clone(), content: None }));
            let content = operation.content.as_ref().map(delivered);
            if content == Some(None) {
                rejected.push(at);
            }
            all.push(Delivered { url: operation.uri.clone(), content: content.flatten() });
            ends.push(all.len());
        }
        let outcomes = deliver(&mirror, &all).map_err(|error| self.unavailable(&error))?;
        let mut outcomes = super::worst_of_each(&outcomes, &ends);
        for at in rejected {
            let detail = "its bytes were not kept, because they are too many".to_owned();
            outcomes[at] = Outcome::Rejected { code: "NOBYTES", detail };
        }
        Ok(outcomes)
    }

    fn job_over(&mut self) -> Result<(), Unavailable> {
        let mirror = self.mirror()?;
        let published = self.publish(&mirror, clock::now_ms());
        published.map_err(|error| self.unavailable(&error))
    }
}

/// What is delivered of a document; `None` if nobody has kept its bytes.
fn delivered(content: &Content) -> Option<DeliveredContent> {
    let said = |name: &str| content.fields.get(name).and_then(|it| it.first()).cloned();
    let media_type = said("media_type").unwrap_or_else(|| content.facts.media_type.clone());
    let charset = said("charset").unwrap_or_else(|| content.facts.charset.clone());
    let group = media_type.split('/').next().unwrap_or("");
    let is_requisite = content.role == DocumentRole::Requisite
        || matches!(group, "image" | "font" | "audio" | "video")
        || matches!(&*media_type, "text/css" | "text/javascript" | "application/javascript");
    let content_type = match charset.is_empty() {
        true => media_type,
        false => format!("{media_type}; charset={charset}"),
    };
    Some(DeliveredContent {
        bytes: content.bytes.clone()?,
        content_type: Some(content_type),
        title: said("title").or_else(|| Some(content.facts.title.clone())),
        last_modified_ms: content.changed_ms,
        etag: None,
        status: None,
        role: if is_requisite { Role::Requisite } else { Role::Page },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn its_settings_are_checked() {
        let check = CONNECTOR.check_config;
        assert!(check(r#"{"directory": "/srv/mirror"}"#).unwrap().contains(r#""keep":10"#));
        for (text, field) in [
            ("{}", "directory"),
            (r#"{"directory": "out"}"#, "directory"),
            (r#"{"directory": "/m", "names": "md5"}"#, "names"),
            (r#"{"directory": "/m", "keep": 0}"#, "keep"),
            (r#"{"directory": "/m", "grace_hours": 1000000}"#, "grace_hours"),
        ] {
            let refused = check(text).unwrap_err();
            assert!(refused.contains(field), "{refused}");
        }
    }

    fn put(uri: &str, media_type: &str, text: &str) -> Operation {
        let bytes = Some(Bytes::copy_from_slice(text.as_bytes()));
        let facts = page::facts::Facts { media_type: media_type.to_owned(), ..Default::default() };
        let content = Some(Content { bytes, facts, ..Content::default() });
        Operation { uri: uri.to_owned(), stale: Vec::new(), content }
    }

    #[test]
    fn what_a_run_has_delivered_is_shown_when_it_is_over() {
        let place = tempfile::tempdir().unwrap();
        let config = format!(r#"{{"directory": {:?}, "names": "path"}}"#, place.path());
        let mut output = open(&config).unwrap();
        let mut of_another_part = open(&config).unwrap();
        output.check().unwrap();
        let html = "<link rel=stylesheet href=/s.css><a href=b.html>b</a>";
        let page = put("https://a.example/a.html", "text/html", html);
        let style = put("https://a.example/s.css", "text/css", "p {}");
        assert_eq!(output.apply("", &[page]).unwrap(), [Outcome::Taken]);
        assert_eq!(of_another_part.apply("", &[style]).unwrap(), [Outcome::Taken]);
        assert!(!place.path().join("webroot").exists(), "nothing shows yet");
        output.job_over().unwrap();
        let shown = place.path().join("webroot/a.example/a.html");
        let text = std::fs::read_to_string(&shown).unwrap();
        assert!(text.contains("href=\"../assets/"), "{text}");
        assert!(text.contains("href=\"https://a.example/b.html\""), "{text}");
        let gone = Operation {
            uri: "https://a.example/b.html".to_owned(),
            stale: vec!["https://a.example/a.html".to_owned()],
            content: Some(Content::default()),
        };
        let outcomes = output.apply("", &[gone]).unwrap();
        assert!(matches!(outcomes[..], [Outcome::Rejected { code: "NOBYTES", .. }]));
        output.job_over().unwrap();
        assert!(!shown.exists());
    }
}
