//! Codes, and URLs that are asked about in other spellings.

use super::*;

#[test]
fn codes_are_unique_and_never_change_their_form() {
    let codes: BTreeSet<&str> = Cause::ALL.iter().map(|cause| cause.code()).collect();
    assert_eq!(codes.len(), Cause::ALL.len());
    assert!(codes.len() >= 25);
    for code in codes {
        assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{code}");
    }
}

#[test]
fn another_spelling_is_understood_and_every_job_that_knows_it_answers() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let world = World::make(db)?;
        world.add(SITE, &url("x"), None, 1)?;
        for asked in
            ["HTTP://Site.example:80/x#top", "site.example/x", "http://site.example/x?utm_source=a"]
        {
            assert_eq!(world.ask(asked, None)["url"], url("x"), "{asked}");
        }
        world.add(IDLE, &url("x"), None, 1)?;
        let context = VerbContext::of_rows(db.clone());
        let ask = |path: &str, job: Option<&str>| {
            let request = WhyRequest { url: url(path), job: job.map(str::to_owned) };
            Why::answer(&context, request)
        };
        let both = ask("x", None).unwrap();
        let jobs: Vec<_> = both.answers.iter().map(|it| it.job.as_deref()).collect();
        assert_eq!(jobs, [Some("idle"), Some("site")]);
        let error = ask("x", Some("nosuch")).err().unwrap().to_string();
        assert!(error.contains("nosuch") && error.contains("driftline status"), "{error}");
        let nobody = ask("y", None).unwrap();
        assert_eq!(nobody.answers.len(), 4, "each job says why not");
        Ok(())
    });
}
