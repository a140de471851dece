//! Every connector the program has: the lists of `crawl` and `outputs` joined, and the
//! registration of those that a database has not met yet.
//!
//! Invariant: a new database has all of them registered; one that was deregistered
//! stays so, because a database remembers which it has met.

pub mod typed;

use crate::refusal::{OrRefuse, refuse};
use store::catalog::Connector;
use store::tables::connections::ConnectionKind;
use store::tables::{registrations, settings};
use store::{Db, Result};

pub fn all() -> impl Iterator<Item = &'static Connector> {
    let repositories = crawl::connectors::ALL.iter().map(|it| &it.0);
    repositories
        .chain(outputs::connectors::ALL.iter().map(|it| &it.0))
        .chain(outputs::transformations::ALL.iter().map(|it| &it.0))
        .chain(outputs::notifications::ALL.iter().map(|it| &it.0))
}

/// The connector of a kind and a name.
pub fn find(kind: ConnectionKind, name: &str) -> Option<&'static Connector> {
    all().find(|it| it.kind == kind && it.name == name)
}

/// The connector of a name; its kind must be given only where two share the name.
pub fn named(kind: Option<ConnectionKind>, name: &str) -> anyhow::Result<&'static Connector> {
    let mut found =
        all().filter(|it| it.name == name && kind.is_none_or(|wanted| it.kind == wanted));
    let first = found.next().or_refuse(|| {
        let there: Vec<String> =
            all().map(|it| format!("{} ({})", it.name, it.kind.name())).collect();
        let of_kind = kind.map_or(String::new(), |kind| format!("{} ", kind.name()));
        format!("there is no {of_kind}connector {name:?}; there are: {}", there.join(", "))
    })?;
    if let Some(second) = found.next() {
        refuse!(
            "there are two connectors named {name}; choose one with --kind {} or --kind {}",
            first.kind.name(),
            second.kind.name()
        );
    }
    Ok(first)
}

/// Registers the connectors that this database has not met yet, which are all for a new
/// one.
pub fn register_new(db: &Db, now_ms: i64) -> Result<()> {
    let names: Vec<String> = all().map(|it| format!("{}/{}", it.kind.name(), it.name)).collect();
    let met = db.read(settings::connectors)?;
    if names.iter().all(|name| met.contains(name)) {
        return Ok(());
    }
    db.write(move |tx| {
        // Another process may have done it since.
        let mut met = settings::lock_connectors(tx)?;
        for (connector, name) in all().zip(&names) {
            if !met.contains(name) {
                registrations::register(tx, connector, now_ms)?;
                met.push(name.clone());
            }
        }
        settings::set_connectors(tx, &met)
    })
}

/// A kind of connection or connector, by its name.
pub fn kind_of(text: &str) -> std::result::Result<ConnectionKind, String> {
    ConnectionKind::parse(text).ok_or_else(|| {
        let names: Vec<&str> = ConnectionKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("there are these kinds: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use store::catalog::Searchable;
    use store::catalog::SettingKind;
    use store::testing::both_databases;

    #[test]
    fn every_connector_says_what_it_is_and_takes_its_own_examples() {
        let mut seen = HashSet::new();
        for it in all() {
            let name = format!("{}/{}", it.kind.name(), it.name);
            assert!(seen.insert(name.clone()), "{name} is there twice");
            assert!(!it.about.is_empty() && !it.about.ends_with('.'), "{name}");
            for (settings, check) in [(it.settings, it.check_config), (it.spec, it.check_spec)] {
                let example = typed::example(settings);
                let checked = check(&example.to_string())
                    .unwrap_or_else(|error| panic!("{name}: {example}: {error}"));
                let fields = typed::names(&serde_json::from_str(&checked).unwrap());
                let mut listed: Vec<String> =
                    settings.iter().map(|it| it.name.to_owned()).collect();
                listed.sort();
                assert_eq!(fields, listed, "{name}: its fields are what it lists");
            }
            assert_eq!(it.install.is_some(), it.deinstall.is_some(), "{name}");
        }
    }

    #[test]
    fn every_default_is_what_the_connector_takes_for_nothing() {
        for it in all() {
            for (settings, check) in [(it.settings, it.check_config), (it.spec, it.check_spec)] {
                let mut said = typed::example(settings);
                let required: Vec<&str> = settings
                    .iter()
                    .filter(|it| {
                        it.default.is_none()
                            && matches!(it.kind, SettingKind::List | SettingKind::Text)
                    })
                    .map(|it| it.name)
                    .collect();
                for setting in settings.iter().filter(|it| !required.contains(&it.name)) {
                    typed::remove(&mut said, setting.name);
                }
                let checked = check(&said.to_string()).unwrap();
                let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
                for setting in settings {
                    let Some(default) = setting.default else { continue };
                    let expected = match (setting.kind, default) {
                        (SettingKind::List, "") => serde_json::json!([]),
                        _ => typed::value(setting, default).unwrap(),
                    };
                    let found = typed::get(&checked, setting.name);
                    let is_unwritten = *setting == Searchable::SETTING
                        || ["agent", "forbid", "requisites", "requisites_max", "roots"]
                            .contains(&setting.name);
                    if is_unwritten && found.is_none() {
                        // It is written only if it is not as usual.
                        continue;
                    }
                    assert_eq!(found, Some(&expected), "{}: {}", it.name, setting.name);
                }
            }
        }
    }

    #[test]
    fn secrets_belong_to_connections_whose_settings_are_sealed() {
        for it in all() {
            let secret = it.spec.iter().find(|setting| setting.kind == SettingKind::Secret);
            assert_eq!(secret, None, "{}: what jobs say is not sealed", it.name);
        }
    }

    #[test]
    fn what_is_not_part_of_the_destination_is_a_setting_and_never_a_place_or_a_secret() {
        for it in all() {
            for name in it.not_destination {
                let setting = it.settings.iter().find(|setting| setting.name == *name);
                let setting = setting.unwrap_or_else(|| panic!("{}: {name}", it.name));
                assert_ne!(setting.kind, SettingKind::Secret, "{}: {name}", it.name);
                let words =
                    ["url", "host", "server", "port", "user", "security", "ca_file", "page"];
                assert!(!words.iter().any(|word| name.contains(word)), "{}: {name}", it.name);
            }
        }
    }

    #[test]
    fn a_name_that_two_share_needs_a_kind() {
        assert_eq!(named(None, "web").unwrap().name, "web");
        let two = named(None, "files").unwrap_err().to_string();
        assert!(two.contains("--kind repository") && two.contains("--kind output"), "{two}");
        assert_eq!(
            named(Some(ConnectionKind::Output), "files").unwrap().kind,
            ConnectionKind::Output
        );
        let none = named(None, "gopher").unwrap_err().to_string();
        assert!(none.contains("gopher") && none.contains("web (repository)"), "{none}");
    }

    #[test]
    fn a_new_database_has_all_connectors_and_one_that_went_stays_away() {
        both_databases(|db| {
            let names = |db: &Db| -> Result<Vec<String>> {
                let listed = db.read(registrations::list)?;
                Ok(listed.into_iter().map(|it| it.classname).collect())
            };
            db.write(|tx| settings::freeze(tx, 4))?;
            register_new(db, 1)?;
            let mut all = names(db)?;
            assert_eq!(all.len(), self::all().count());
            let web = find(ConnectionKind::Repository, "web").expect("it is there");
            db.write(move |tx| registrations::deregister(tx, web, 2))?;
            register_new(db, 3)?;
            all.retain(|name| name != "web");
            assert_eq!(names(db)?, all);
            Ok(())
        });
    }
}
