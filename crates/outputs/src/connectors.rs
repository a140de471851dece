//! The output connectors: what each says of itself; one line a connector.
//!
//! Help, checks, forms and documents come from this list; a test of the program loops
//! over it. Invariant: what a connector says of its fields is what its struct has.

pub mod files;
pub mod null;

use crate::output::Output;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::catalog::Connector;

/// Opens a connection with its configuration. The error is a sentence.
pub type Open = fn(&str) -> Result<Box<dyn Output>, String>;

/// Every output connector, and what opens its connections.
pub const ALL: &[(Connector, Open)] =
    &[(files::CONNECTOR, files::open), (null::CONNECTOR, null::open)];

/// Opens an output connection. The error is a sentence.
pub fn open(class: &str, config: &str) -> Result<Box<dyn Output>, String> {
    match ALL.iter().find(|it| it.0.name == class) {
        Some((_, open)) => open(config),
        None => Err(format!("this program has no output connector {class}")),
    }
}

/// Reads JSON of a connector's form. The error is a sentence that names the field,
/// without the line and column, which nobody who typed a setting knows.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        message.split(" at line ").next().unwrap_or(&message).to_owned()
    })
}

/// Its form with every field, as JSON.
fn written(form: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(form).map_err(|error| error.to_string())
}
