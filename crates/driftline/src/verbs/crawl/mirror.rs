//! The mirror that a crawl keeps: an output connection, and a stage of its job.
//!
//! Invariant: what is there already stays; a second crawl into the same directory changes nothing
//! of its definitions.

use crate::definitions::{self, ConnectionForm, Definitions, StageForm, checked};
use crate::refusal::refusal;
use outputs::mirror::Names;
use page::ids::DocHash;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use store::tables::connections::ConnectionKind;
use store::{Db, clock};

/// The connector of mirrors.
const CONNECTOR: &str = "mirror";

/// Where a job keeps a browsable copy of its site.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MirrorTarget {
    /// The absolute directory of the mirror.
    pub directory: String,
    /// What pages are called; without it, as it is, or by their hash.
    pub names: Option<Names>,
}

impl MirrorTarget {
    /// Makes the mirror's connection, if it is not there, and sends the job's documents to it.
    pub fn ensure(&self, db: &Db, job: &str) -> anyhow::Result<()> {
        let stored = db.read(definitions::collect)?;
        let new = checked(&stored, &self.wanted(&stored, job)?)?;
        if definitions::difference(&stored, &new).is_empty() {
            return Ok(());
        }
        db.write(move |tx| definitions::apply(tx, &stored, &new, clock::now_ms()))?;
        Ok(())
    }

    /// The connection and the job as they are to be.
    fn wanted(&self, stored: &Definitions, job: &str) -> anyhow::Result<Definitions> {
        let is_ours = |form: &ConnectionForm| {
            form.connector == CONNECTOR && form.settings["directory"] == self.directory.as_str()
        };
        let outputs = stored.connections.of(ConnectionKind::Output);
        let known = outputs.iter().find(|(_, form)| is_ours(form));
        let (name, mut connection) = match known {
            Some((name, form)) => (name.clone(), form.clone()),
            None => (self.fresh_name(), ConnectionForm::new(CONNECTOR)),
        };
        if let Json::Object(settings) = &mut connection.settings {
            settings.insert("directory".to_owned(), json!(self.directory));
            if let Some(names) = self.names {
                settings.insert("names".to_owned(), json!(names.word()));
            }
        }
        let form = stored.jobs.get(job);
        let mut form = form.cloned().ok_or_else(|| refusal(format!("there is no job {job}")))?;
        if !form.pipeline.iter().any(|stage| stage.output.as_ref() == Some(&name)) {
            form.pipeline.push(StageForm {
                transformation: None,
                output: Some(name.clone()),
                after: None,
                description: None,
                spec: json!({}),
            });
        }
        let mut new = Definitions::default();
        new.connections.of_mut(ConnectionKind::Output).insert(name, connection);
        new.jobs.insert(job.to_owned(), form);
        Ok(new)
    }

    /// A name that says which directory it is for.
    fn fresh_name(&self) -> String {
        format!("mirror-{}", &DocHash::of(&self.directory).to_hex()[..8])
    }
}
