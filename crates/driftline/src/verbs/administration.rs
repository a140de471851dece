//! What is defined beside jobs, who may call, and who changed what.

pub mod audit;
pub mod authorities;
pub mod connections;
pub mod connectors;
pub mod definitions;
pub mod tokens;

use super::access::{Area, Needs};
use super::registry::{RegisteredVerb, change, verb, verb_at};

/// What all of it needs.
const ADMIN: Option<Needs> = Some(Needs::admin(Area::Administration));

/// The verbs of this room.
pub const VERBS: &[RegisteredVerb] = &[
    verb::<connectors::Connectors>(),
    change::<connectors::RegisterConnector>(),
    verb::<connections::Connections>(),
    change::<connections::ChangeConnection>(),
    verb::<authorities::Authorities>(),
    change::<authorities::ChangeAuthority>(),
    verb::<definitions::ExportDefinitions>(),
    change::<definitions::ImportDefinitions>(),
    verb::<tokens::Tokens>(),
    change::<tokens::CreateToken>(),
    change::<tokens::RevokeToken>(),
    verb_at::<audit::AuditEntries>("/api/v1/audit", "Who changed what, newest first"),
    verb::<audit::CheckAudit>(),
];
