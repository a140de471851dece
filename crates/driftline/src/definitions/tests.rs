//! Definitions go out and come in whole, on both databases; what cannot be used changes
//! nothing.

use super::*;
use crate::catalog::{self, typed};
use serde_json::json;
use store::tables::{connections, jobs, nodes, settings};
use store::testing::both_databases;
use store::{Db, Error, Result};

const WHOLE: &str = r#"
[authgroups.staff]
description = "who works here"

[authdomains.corp]

[connections.repository.intranet]
connector = "web"
description = "our own pages"
max_connections = 4
group = "staff"

[connections.repository.intranet.throttles.'^www\.']
description = "gently"
per_minute = 12
connections = 2
bytes_per_s = 100000

[connections.repository.disk]
connector = "files"

[connections.output.copy]
connector = "files"
settings.directory = "/srv/out"

[connections.output.nowhere]
connector = "null"

[jobs.docs]
connection = "intranet"
description = "the handbook"
priority = 3
type = "continuous"
recrawl_ms = 60000
start = "window inside"
hopcount = "never delete"
refetch = "fixed"
fetches_per_day = 1000
on_failure = "abort"
hops = { link = 3, redirect = 2 }
schedules = ["days=mon-fri hours=3 zone=europe/berlin window=120m", "dates=1 minimal"]

[jobs.docs.spec]
seeds = ["http://intra.example/"]
scope.reach = "domain"
links = "off"

[[jobs.docs.pipeline]]
output = "copy"

[[jobs.docs.pipeline]]
output = "nowhere"
description = "to measure"

[jobs.tree]
connection = "disk"
spec.roots = ["/srv/docs"]
"#;

fn read(text: &str) -> Definitions {
    toml::from_str(text).unwrap()
}

/// Imports a document as the program does. Returns what changed.
fn import(db: &Db, new: &Definitions) -> Result<Vec<String>> {
    let new = new.clone();
    db.write(move |tx| {
        let stored = collect(tx)?;
        let new = checked(&stored, &new).map_err(|error| Error::Refused(format!("{error:#}")))?;
        let lines = difference(&stored, &new);
        apply(tx, &stored, &new, 5)?;
        Ok(lines)
    })
}

fn made(test: impl Fn(&Db) -> Result<()>) {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, 4))?;
        catalog::register_new(db, 1)?;
        test(db)
    });
}

#[test]
fn what_goes_out_comes_in_the_same_as_toml_and_as_json() {
    made(|db| {
        let lines = import(db, &read(WHOLE))?;
        assert_eq!(lines.len(), 8, "{lines:?}");
        assert!(lines.iter().all(|line| line.ends_with(": new")), "{lines:?}");
        let stored = db.read(collect)?;
        assert_eq!(import(db, &read(WHOLE))?, Vec::<String>::new(), "nothing has changed");
        let as_toml = toml::to_string_pretty(&stored).unwrap();
        assert_eq!(read(&as_toml), stored, "{as_toml}");
        let as_json = serde_json::to_string(&stored).unwrap();
        assert_eq!(serde_json::from_str::<Definitions>(&as_json).unwrap(), stored);
        assert_eq!(import(db, &stored)?, Vec::<String>::new());
        let version = |db: &Db| {
            db.read(|tx| {
                let job = jobs::find(tx, "docs")?.expect("it was made");
                jobs::version(tx, job.id)
            })
        };
        let before = version(db)?;
        import(db, &stored)?;
        assert_eq!(version(db)?, before, "nothing was written");
        let form = &stored.jobs["docs"];
        assert_eq!((form.priority, form.hops["link"]), (3, 3));
        let schedules =
            ["hours=3 days=mon-fri zone=Europe/Berlin window=2h", "dates=1 zone=UTC minimal"];
        assert_eq!(form.schedules, schedules, "each is written in one way");
        assert_eq!(form.spec["scope"]["reach"], "domain");
        assert_eq!(form.spec["delay_ms"], 1000, "what is left out is filled in");
        assert_eq!(form.spec["links"], "off", "nothing is something to say");
        assert_eq!(stored.connections.repository["intranet"].throttles.len(), 1);
        Ok(())
    });
}

#[test]
fn a_difference_is_told_in_plain_lines_and_what_is_not_named_stays() {
    made(|db| {
        import(db, &read(WHOLE))?;
        let mut new = Definitions::default();
        let mut stored = db.read(collect)?;
        let mut docs = stored.jobs["docs"].clone();
        docs.priority = 5;
        docs.hops.remove("redirect");
        docs.pipeline.remove(0);
        docs.schedules.truncate(1);
        docs.spec["seeds"] = json!(["http://intra.example/", "http://b.example/"]);
        new.jobs.insert("docs".into(), docs);
        let mut intranet = stored.connections.repository["intranet"].clone();
        intranet.group = None;
        intranet.throttles.clear();
        new.connections.repository.insert("intranet".into(), intranet);
        let lines = import(db, &new)?;
        for line in [
            "job docs: priority 3 -> 5",
            "job docs: hops.redirect 2 -> (none)",
            "job docs: pipeline.0.output copy -> nowhere",
            "repository connection intranet: group staff -> (none)",
            "job docs: schedules [\"hours=3 days=mon-fri zone=Europe/Berlin window=2h\",\
             \"dates=1 zone=UTC minimal\"] -> \
             [\"hours=3 days=mon-fri zone=Europe/Berlin window=2h\"]",
            "job docs: spec.seeds [\"http://intra.example/\"] -> \
             [\"http://intra.example/\",\"http://b.example/\"]",
        ] {
            assert!(lines.contains(&line.to_owned()), "{line} is not in {lines:#?}");
        }
        stored.jobs.extend(new.jobs);
        stored.connections.repository.extend(new.connections.repository);
        assert_eq!(db.read(collect)?, stored);
        Ok(())
    });
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place_and_nothing_is_written() {
    made(|db| {
        let job = "connection = \"disk\"\nspec.roots = [\"/a\"]\n";
        let disk = "[connections.repository.disk]\nconnector = \"files\"\n";
        for (text, words) in [
            ("[connections.repository.a]\nconnector = \"gopher\"", "gopher"),
            ("[connections.output.a]\nconnector = \"web\"", "no output connector"),
            ("[connections.output.a]\nconnector = \"files\"", "output connection a: settings"),
            ("[connections.output.a]\nconnector = \"null\"\nsettings.x = 1", "`x`"),
            ("[connections.output.a]\nconnector = \"null\"\nthrottles.a = {}", "throttles"),
            ("[connections.repository.a]\nconnector = \"web\"\nthrottles.'(' = {}", "(\" is no"),
            ("[connections.repository.a]\nconnector = \"web\"\ngroup = \"x\"", "group named x"),
            ("[connections.repository.a]\nconnector = \"web\"\nmax_connections = 0", "at least 1"),
            ("[jobs.a]\nconnection = \"nowhere\"", "job a: there is no repository connection"),
            (&format!("{disk}[jobs.a]\nconnection = \"disk\""), "job a: spec: roots"),
            (
                &format!("{disk}settings.roots = [\"/srv\"]\n[jobs.a]\n{job}"),
                "job a: spec: roots: /a is not under a directory that the connection allows (/srv)",
            ),
            (
                "[connections.repository.w]\nconnector = \"web\"\nsettings.forbid = \
                 [\"allow_private\"]\n[jobs.a]\nconnection = \"w\"\nspec.seeds = \
                 [\"http://a.example/\"]\nspec.allow_private = true",
                "allow_private: the connection forbids",
            ),
            (
                "[connections.repository.w]\nconnector = \"feed\"\nsettings.forbid = \
                 [\"ignore_robots\"]\n[jobs.a]\nconnection = \"w\"\nspec.seeds = \
                 [\"http://a.example/\"]\nspec.robots = \"none\"",
                "forbids its jobs to ignore robots.txt",
            ),
            (
                "[connections.repository.w]\nconnector = \"web\"\nsettings.forbid = [\"all\"]",
                "unknown variant `all`",
            ),
            (&format!("{disk}[jobs.a]\n{job}priority = 11"), "priority is 11"),
            (&format!("{disk}[jobs.a]\n{job}start = \"now\""), "window begin"),
            (&format!("{disk}[jobs.a]\n{job}hops.link = 1"), "child"),
            (&format!("{disk}[jobs.a]\n{job}reseed_ms = 0"), "reseed_ms"),
            (&format!("{disk}[jobs.a]\n{job}pipeline = [{{}}]"), "stage 0"),
            (&format!("{disk}[jobs.a]\n{job}schedules = [\"hours=25\"]"), "from 0 to 23"),
            (&format!("{disk}[jobs.a]\n{job}pipeline = [{{output = \"x\"}}]"), "named \"x\""),
        ] {
            let refused = import(db, &read(text)).unwrap_err().to_string();
            assert!(refused.contains(words), "{text}: {refused}");
        }
        assert_eq!(db.read(collect)?, Definitions::default());
        Ok(())
    });
    for text in ["[jobs.a]\nconnexion = \"x\"", "[job.a]", "[connections.gopher.a]"] {
        let refused = toml::from_str::<Definitions>(text).unwrap_err().to_string();
        assert!(refused.contains("unknown field") && refused.contains("line"), "{refused}");
    }
}

#[test]
fn a_connection_needs_a_registered_connector_only_when_it_is_made() {
    made(|db| {
        import(db, &read(WHOLE))?;
        let null = catalog::find(ConnectionKind::Output, "null").expect("it is there");
        db.write(move |tx| store::tables::registrations::deregister(tx, null, 2))?;
        let text = |name: &str| {
            format!("[connections.output.{name}]\nconnector = \"null\"\ndescription = \"x\"")
        };
        let refused = import(db, &read(&text("other"))).unwrap_err().to_string();
        assert!(refused.contains("driftline connector register null"), "{refused}");
        let lines = import(db, &read(&text("nowhere")))?;
        assert_eq!(lines, ["output connection nowhere: description (none) -> x"]);
        Ok(())
    });
}

#[test]
fn mappings_are_saved_in_the_order_in_which_they_are_asked() {
    made(|db| {
        let form = |prerequisite: Option<&str>| ConnectionForm {
            prerequisite: prerequisite.map(str::to_owned),
            ..ConnectionForm::new("none")
        };
        let mut new = Definitions::default();
        for (name, before) in [("a", Some("b")), ("b", Some("c")), ("c", None)] {
            new.connections.mapping.insert(name.into(), form(before));
        }
        // No mapping connector is built in: the tables are what is tried here.
        db.write(move |tx| {
            let connector = store::catalog::Connector {
                kind: ConnectionKind::Mapping,
                name: "none",
                ..*catalog::find(ConnectionKind::Output, "null").expect("it is there")
            };
            store::tables::registrations::register(tx, &connector, 1)?;
            apply(tx, &Definitions::default(), &new, 5)
        })?;
        let listed = db.read(|tx| connections::list(tx, ConnectionKind::Mapping, "", 9))?;
        assert_eq!(listed.len(), 3);
        let stopped = db.read(|tx| nodes::live(tx, "define", 0, 9))?;
        assert_eq!(stopped, [], "the node that gave ids has ended");
        Ok(())
    });
}

#[test]
fn nulls_are_left_out() {
    let mut json = json!({"a": null, "b": {"c": null, "d": [{"e": null}]}});
    without_null(&mut json);
    assert_eq!(json, json!({"b": {"d": [{}]}}));
    assert!(typed::names(&nothing()).is_empty());
}
