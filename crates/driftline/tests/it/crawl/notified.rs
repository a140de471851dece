//! People hear of what became of a job, and no job waits for them.

use super::files::Tree;
use super::{Home, Running, text};
use ::crawl::lifecycle::JobEvent;
use ::outputs::testing::Fault;
use ::outputs::testing::receiver::Receiver;
use ::outputs::testing::smtp::{Security, Smtp};
use std::collections::BTreeSet;

/// A files job that tells a receiver and a mail server.
struct Told {
    tree: Tree,
    receiver: Receiver,
    smtp: Smtp,
}

impl Told {
    fn new() -> Told {
        let (receiver, smtp) = (Receiver::start(), Smtp::start(Security::Plain));
        let more = format!(
            "[[jobs.docs.notifications]]\nconnection = \"desk\"\n\
             [[jobs.docs.notifications]]\nconnection = \"admin\"\n\
             [connections.notification.desk]\nconnector = \"webhook\"\nsettings.url = {:?}\n\
             [connections.notification.admin]\nconnector = \"email\"\n\
             [connections.notification.admin.settings]\nserver = \"127.0.0.1\"\nport = {}\n\
             security = \"plain\"\nfrom = \"crawler@example.com\"\nto = [\"admin@example.com\"]\n\
             events = [\"end\", \"error abort\"]\n",
            receiver.server.url(),
            smtp.port()
        );
        Told { tree: Tree::with(Home::directory(), &more), receiver, smtp }
    }

    fn events(&self) -> Vec<String> {
        let messages = self.receiver.messages();
        messages.iter().map(|it| it["event"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn hears(&self, count: usize) {
        self.receiver.shelf.wait("it is told", |kept| kept.documents.len() >= count);
    }

    fn told(&self, args: &[&str]) -> String {
        let done = self.tree.home.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }
}

#[test]
fn the_end_of_a_run_is_told_by_message_and_by_mail() {
    let told = Told::new();
    told.told(&["connection", "check", "desk"]);
    told.told(&["connection", "check", "admin"]);
    told.tree.run(false);
    assert_eq!(told.events(), ["end"], "it was told before the process ended");
    let message = told.receiver.messages().remove(0);
    assert_eq!((&message["job"], &message["run"]), (&"docs".into(), &1.into()), "{message}");
    assert_eq!(message["documents"]["done"], 5);
    let mails = told.smtp.mails();
    assert_eq!(mails.len(), 1);
    assert!(mails[0].text.contains("Subject: job docs: run 1 is over"), "{}", mails[0].text);
    let told_of = told.tree.home.texts(
        "SELECT activitytype FROM history WHERE activitytype LIKE 'notification%'
         AND resultcode = 'OK'",
    );
    let expected: BTreeSet<String> =
        ["notification (admin)", "notification (desk)"].map(str::to_owned).into();
    assert_eq!(told_of, expected);
}

/// Nobody who cannot be told holds up a job.
#[test]
fn a_job_ends_although_nobody_can_be_told() {
    let told = Told::new();
    told.receiver.shelf.fail(vec![Fault::Status(500); 10]);
    told.smtp.refuse("550 no");
    told.smtp.refuse("550 no");
    told.tree.run(false);
    assert!(told.events().is_empty());
    let failed = "SELECT COUNT(*) FROM history WHERE activitytype LIKE 'notification%'
                  AND resultcode = 'FAILED'";
    assert_eq!(told.tree.home.number(failed), 2);
    assert!(told.receiver.shelf.kept().updates >= 2, "it was tried again");
}

/// Pauses, aborts and restarts of a job that has nothing else to do but to wait for its
/// output.
#[test]
fn pauses_aborts_and_restarts_are_told() {
    let told = Told::new();
    let far = Receiver::start();
    let url = format!("url={}", far.server.url());
    let create = ["create", "far", "--connector", "webhook", "--kind", "output", &url];
    told.told(&[&["connection"][..], &create].concat());
    let every = ["--type", "continuous", "--interval", "1h", "--pipeline", "far"];
    told.told(&[&["job", "edit", "docs"][..], &every].concat());
    let running = Running::start(told.tree.home.command(&["work", "--lease", "1"]));
    told.told(&["job", "start", "docs"]);
    running.prints("job docs: ACTIVE");
    told.told(&["job", "pause", "docs"]);
    told.hears(1);
    told.told(&["job", "resume", "docs"]);
    let is_active = |told: &Told| told.told(&["job", "show", "docs"]).contains("ACTIVE");
    while !is_active(&told) {
        std::thread::yield_now();
    }
    told.told(&["job", "restart", "docs"]);
    told.hears(2);
    while !is_active(&told) {
        std::thread::yield_now();
    }
    told.told(&["job", "abort", "docs"]);
    told.hears(3);
    drop(running);
    assert_eq!(told.events(), ["manual pause", "restart", "manual abort"]);
}

/// Sixty of sixty-three files are gone: a few go at once, for the rest a person is asked.
#[test]
fn removals_that_are_held_are_told() {
    let told = Told::new();
    let name = |number: usize| format!("more{number}.txt");
    (0..60).for_each(|number| told.tree.write(&name(number), "one of many"));
    told.tree.run(false);
    (0..60).for_each(|number| std::fs::remove_file(told.tree.root.join(name(number))).unwrap());
    told.tree.run(false);
    assert_eq!(told.events(), ["end", "removals-held", "end"]);
    let message = told.receiver.messages().remove(1);
    let held = message["documents"]["leaving gone"].as_i64().unwrap();
    // The share of the file below may be one of the twenty.
    assert!((40..=41).contains(&held), "{message}");
    let live = "SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL";
    assert_eq!(told.tree.home.number(live), 3 + held);
}

/// A run that fails says why.
#[test]
fn an_abort_for_an_error_is_told_with_its_reason() {
    let told = Told::new();
    told.tree.change(JobEvent::Start { minimal: false });
    told.tree.change(JobEvent::Fail("the disk is full".to_owned()));
    told.tree.work();
    assert_eq!(told.events(), ["error abort"]);
    assert_eq!(told.receiver.messages()[0]["error"], "the disk is full");
    assert!(told.smtp.mails()[0].text.contains("the disk is full"));
}
