//! JobFlags as they are typed, and what they make of a job.

use super::*;
use clap::Parser;
use serde_json::json;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    flags: JobFlags,
}

fn typed_as(args: &[&str]) -> Result<JobFlags, String> {
    let line = [&["job"], args].concat();
    CommandLine::try_parse_from(line).map(|line| line.flags).map_err(|error| error.to_string())
}

fn applied(form: &JobForm, args: &[&str]) -> anyhow::Result<JobForm> {
    let mut form = form.clone();
    let flags = typed_as(args).map_err(anyhow::Error::msg)?;
    flags.apply(&crawl::connectors::files::CONNECTOR, &mut form)?;
    Ok(form)
}

fn refused(args: &[&str]) -> String {
    format!("{:#}", applied(&JobForm::new("disk"), args).unwrap_err())
}

#[test]
fn what_is_given_changes_and_what_is_empty_is_taken_back() {
    let first = applied(
        &JobForm::new("disk"),
        &[
            "--type",
            "continuous",
            "--interval",
            "1h30min",
            "--max-interval",
            "1 week",
            "--reseed",
            "2d",
            "--expire",
            "30 days",
            "--priority",
            "3",
            "--hops",
            "child=4",
            "--hopcount",
            "never-delete",
            "--on-failure",
            "abort",
            "--refetch",
            "fixed",
            "--fetches-per-day",
            "1000",
            "--pipeline",
            "copy",
            "--notify",
            "mail",
            "--schedule",
            "hours=3",
            "roots=/a",
            "roots=/b",
            "by=hash",
        ],
    );
    let first = first.unwrap();
    let expected = [5_400_000, 604_800_000, 172_800_000, 2_592_000_000].map(Some);
    let spans = [first.recrawl_ms, first.recrawl_max_ms, first.reseed_ms, first.expiration_ms];
    assert_eq!(spans, expected);
    assert_eq!((first.kind.as_str(), first.hopcount.as_str()), ("continuous", "never delete"));
    assert_eq!((first.hops["child"], first.fetches_per_day), (4, Some(1000)));
    assert_eq!(first.start, "window begin", "a schedule that starts nothing is not meant");
    assert_eq!(first.spec, json!({"roots": ["/a", "/b"], "by": "hash"}));
    assert_eq!(applied(&first, &[]).unwrap(), first);

    let second = applied(
        &first,
        &[
            "--interval",
            "",
            "--hops",
            "child=",
            "--fetches-per-day",
            "0",
            "--pipeline",
            "",
            "--notify",
            "",
            "--schedule",
            "",
            "by=",
        ],
    );
    let second = second.unwrap();
    assert_eq!((second.recrawl_ms, second.fetches_per_day), (None, None));
    assert!(second.hops.is_empty() && second.pipeline.is_empty() && second.schedules.is_empty());
    assert!(second.notifications.is_empty());
    assert_eq!(second.spec, json!({"roots": ["/a", "/b"]}));
}

#[test]
fn a_start_method_that_is_given_counts() {
    let args = ["--schedule", "hours=3", "--start-method", "manual"];
    let form = applied(&JobForm::new("disk"), &args).unwrap();
    assert_eq!((form.start.as_str(), form.schedules.len()), ("manual", 1));
    let inside = applied(&form, &["--start-method", "window-inside"]).unwrap();
    assert_eq!(applied(&inside, &["--schedule", "hours=4"]).unwrap().start, "window inside");
    let spaced = applied(&form, &["--start-method", "window begin"]).unwrap();
    assert_eq!(spaced.start, "window begin");
}

#[test]
fn what_cannot_be_read_is_refused_with_what_can() {
    for (args, words) in [
        (["--type", "often"].as_slice(), "scan-once, continuous"),
        (&["--start-method", "now"], "manual, window-begin, window-inside"),
        (&["--hopcount", "exact"], "accurate, no-delete, never-delete"),
        (&["--refetch", "often"], "estimate, formula, fixed"),
        (&["--on-failure", "cry"], "skip, abort"),
        (&["--interval", "1d"], "add --type continuous"),
        (&["--type", "continuous", "--interval", "5"], "15min"),
        (&["--type", "continuous", "--interval", "0d"], "15min"),
        (&["--type", "continuous", "--reseed", "soon"], "--reseed is a duration"),
        (&["--type", "continuous", "--interval", "2d", "--max-interval", "1d"], "swap them"),
        (&["--hops", "child"], "such as link=3"),
        (&["--hops", "child=-1"], "such as link=3"),
        (&["--hops", "child=many"], "such as link=3"),
        (&["roots"], "name=value"),
        (&["rots=/a"], "roots"),
    ] {
        let refused = refused(args);
        assert!(refused.contains(words), "{args:?}: {refused}");
    }
}
