//! Secrets go in and never come out; who changed what is written down.

use super::*;
use crate::catalog;
use crate::http::params::ParamKind;
use crate::http::routes::{self, Method};
use store::dialect::Dialect;
use store::testing::both_databases;
use store::{Db, clock};

/// A secret that must be nowhere.
const CANARY: &str = "canary-7f3a";

/// Where a text is stored, whoever can read it there.
fn in_rows(db: &Db, text: &'static str) -> store::Result<Vec<String>> {
    if db.dialect() == Dialect::Sqlite {
        let files = ["", "-wal"].map(|end| format!("{}{end}", db.place()));
        let has = |path: &String| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(text.len()).any(|it| it == text.as_bytes())
        };
        assert!(!std::fs::read(&files[0]).unwrap().is_empty());
        return Ok(files.into_iter().filter(has).collect());
    }
    db.read(move |tx| {
        let columns: Vec<(String, String)> = tx.query(
            "SELECT c.table_name::text, c.column_name::text FROM information_schema.columns c
             JOIN information_schema.tables t ON t.table_name = c.table_name
             WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' LIMIT 2000",
            &[],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        assert!(columns.len() > 200, "{}", columns.len());
        let mut found = Vec::new();
        for (table, column) in columns {
            let sql = format!("SELECT 1 FROM {table} WHERE CAST({column} AS text) LIKE $1 LIMIT 1");
            let like = format!("%{text}%");
            if tx.query_opt(&sql, &[like.as_str().into()], |_| Ok(()))?.is_some() {
                found.push(format!("{table}.{column}"));
            }
        }
        Ok(found)
    })
}

fn connection(password: &str) -> Json {
    json!({
        "connector": "solr",
        "settings": {"url": "http://127.0.0.1:9/solr/x", "user": "me", "password": password},
    })
}

#[test]
fn a_secret_goes_in_and_never_comes_out() {
    both_databases(|db| {
        catalog::register_new(db, clock::now_ms()).unwrap();
        let api = Api::of(db);
        let path = "/api/v1/connections/output/solr";
        let (status, made) = api.send_json("PUT", path, &connection(CANARY));
        assert_eq!(status, 200, "{made}");
        assert_eq!(made["applied"], true);
        let (status, kept) = api.send_json("PUT", path, &connection("***"));
        assert_eq!((status, &kept["changes"]), (200, &json!([])), "it stays as it is: {kept}");
        let (_, shown) = api.get("/api/v1/connections");
        assert!(shown.to_string().contains("***"), "{shown}");
        let job = json!({"connection": "web", "spec": {"seeds": ["http://a.example/"]},
            "pipeline": [{"output": "solr"}]});
        let web = json!({"connector": "web"});
        assert_eq!(api.send_json("PUT", "/api/v1/connections/repository/web", &web).0, 200);
        let (status, made) = api.send_json("PUT", "/api/v1/jobs/solr", &job);
        assert_eq!(status, 200, "{made}");
        let mut asked = 0;
        for route in routes::all().filter(|it| it.method == Method::Get) {
            let value =
                |kind: &ParamKind| if matches!(kind, ParamKind::Choice(_)) { "in" } else { "solr" };
            let in_path = |name: &str| route.path.contains(&format!("{{{name}}}"));
            let needed = route.params.iter().filter(|it| it.is_required && !in_path(&it.name));
            let query: Vec<String> =
                needed.map(|it| format!("{}={}", it.name, value(&it.kind))).collect();
            let path = route.path.replace("{name}", "solr").replace("{kind}", "output");
            let (status, answer) = api.get(&format!("{path}?{}", query.join("&")));
            assert!(status < 500, "{path}: {answer}");
            if path.starts_with("/api/v1/jobs") || path == "/api/v1/definitions" {
                assert_eq!(status, 200, "{path}: {answer}");
            }
            assert!(!answer.to_string().contains(CANARY), "{path}: {answer}");
            asked += 1;
        }
        assert!(asked > 25, "{asked}");
        let log = api.log.text();
        assert!(!log.contains(CANARY), "{log}");
        let found = in_rows(db, CANARY)?;
        assert!(found.is_empty(), "it is in the open in {found:?}");
        // Nor does it follow to another place.
        let mut elsewhere = connection("***");
        elsewhere["settings"]["url"] = "http://127.0.0.1:9/solr/other".into();
        let (status, refused) = api.send_json("PUT", path, &elsewhere);
        assert_eq!(status, 400, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains("give password again"), "{refused}");
        Ok(())
    });
}

#[test]
fn who_changed_what_is_written_down_and_what_was_only_looked_at_is_not() {
    both_databases(|db| {
        catalog::register_new(db, clock::now_ms()).unwrap();
        let api = Api::of(db);
        let (status, made) =
            api.send_json("POST", "/api/v1/tokens", &json!({"name": "guest", "role": "viewer"}));
        assert_eq!(status, 200, "{made}");
        let secret = made["token"].as_str().unwrap();
        let used = api.request("GET", "/api/v1/status", Some(secret)).send().unwrap();
        assert_eq!(used.status(), 200);
        let (status, _) =
            api.send_json("POST", "/api/v1/tokens", &json!({"name": "guest", "role": "admin"}));
        assert_eq!(status, 400, "the name is in use");
        let path = "/api/v1/connections/output/solr";
        let (status, _) = api.send_json("PUT", &format!("{path}?dry_run=true"), &connection("p"));
        assert_eq!(status, 200);
        assert_eq!(api.send_json("PUT", path, &connection("p")).0, 200);
        assert_eq!(api.send("DELETE", path, Role::Admin).status(), 200);
        let (_, page) = api.get("/api/v1/audit?limit=3");
        let (_, rest) =
            api.get(&format!("/api/v1/audit?cursor={}", page["cursor"].as_str().unwrap()));
        let told = |it: &Json| {
            assert_eq!(it["who"], "t3");
            let [verb, outcome, changes] =
                ["verb", "outcome", "changes"].map(|name| it[name].as_str().unwrap());
            format!("{verb} {outcome}: {changes}")
        };
        let all = [page["entries"].as_array().unwrap(), rest["entries"].as_array().unwrap()];
        let all: Vec<String> = all.into_iter().flatten().map(told).collect();
        assert_eq!(all.len(), 4, "{all:?}");
        let solr = "output connection solr";
        for (told, deed) in [
            (&all[0], format!("connection done: {solr}: deleted\n{solr} was ")),
            (&all[1], format!("import done: {solr}: new\n{solr} is ")),
        ] {
            let form = told.strip_prefix(&deed).unwrap_or_else(|| panic!("{told}"));
            let form: Json = serde_json::from_str(form).unwrap();
            assert_eq!(
                (&form["connector"], &form["settings"]["user"]),
                (&json!("solr"), &json!("me"))
            );
            assert_eq!(form["settings"]["password"], "***");
        }
        assert!(
            all[2].starts_with("token refused: there is already a token named guest"),
            "{all:?}"
        );
        assert_eq!(all[3], "token done: token guest: created, viewer");
        assert!(!page.to_string().contains(secret) && !rest.to_string().contains(secret));
        let (_, tokens) = api.get("/api/v1/tokens");
        let guest = &tokens[0];
        assert_eq!((&guest["name"], &guest["role"]), (&json!("guest"), &json!("viewer")));
        assert!(guest["used_ms"].is_number() && !tokens.to_string().contains(secret), "{tokens}");
        Ok(())
    });
}
