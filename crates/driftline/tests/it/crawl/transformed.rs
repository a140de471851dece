//! Documents are changed on their way to an output, and sent again when the way changes.

use super::files::Tree;
use super::{Home, text};
use ::outputs::testing::receiver::Receiver;
use serde_json::Value as Json;

/// A files job with two outputs, one of them behind transformations.
struct Changed {
    tree: Tree,
    far: Receiver,
    plain: Receiver,
}

const PAGE: &str = "<title>The sea</title><p>The keeper wrote down what he saw of the sea each \
                    morning, and what the ships had told him at night.";

impl Changed {
    fn new(home: Home) -> Changed {
        let (far, plain) = (Receiver::start(), Receiver::start());
        let more = format!(
            "[[jobs.docs.pipeline]]\ntransformation = \"pages\"\n\
             [[jobs.docs.pipeline]]\ntransformation = \"tags\"\nafter = 0\n\
             [[jobs.docs.pipeline]]\ntransformation = \"lang\"\nafter = 1\n\
             [[jobs.docs.pipeline]]\noutput = \"far\"\nafter = 2\n\
             [[jobs.docs.pipeline]]\noutput = \"plain\"\n\
             [connections.transformation.pages]\nconnector = \"allowed\"\n\
             settings.types = [\"text/html\"]\n\
             [connections.transformation.tags]\nconnector = \"metadata\"\n\
             settings.set = [\"label={{title}} at {{uri}}\"]\n\
             [connections.transformation.lang]\nconnector = \"language\"\n\
             [connections.output.far]\nconnector = \"webhook\"\nsettings.url = {:?}\n\
             [connections.output.plain]\nconnector = \"webhook\"\nsettings.url = {:?}\n",
            far.server.url(),
            plain.server.url()
        );
        let tree = Tree::with(home, &more);
        tree.write("page.html", PAGE);
        Changed { tree, far, plain }
    }

    fn told(&self, args: &[&str]) {
        let done = self.tree.home.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
    }

    fn page(&self) -> Json {
        let kept = self.far.shelf.kept();
        let found = kept.documents.iter().find(|it| it.0.ends_with("page.html"));
        found.map(|it| it.1.clone()).unwrap_or_default()
    }

    fn count(&self) -> (usize, usize) {
        let count = |it: &Receiver| it.shelf.kept().documents.len();
        (count(&self.far), count(&self.plain))
    }
}

fn documents_are_changed_on_their_way(home: Home) {
    let changed = Changed::new(home);
    changed.tree.run(false);
    assert_eq!(changed.count(), (1, 4), "text files are not let through");
    let page = changed.page();
    let label = page["label"].as_str().unwrap();
    assert!(label.starts_with("The sea at file:///") && label.ends_with("page.html"), "{page}");
    assert_eq!(page["lang"], "en");
    let excluded = "SELECT COUNT(*) FROM history WHERE resultcode = 'EXCLUDEDMIMETYPE'
                    AND activitytype = 'document ingest (far)'";
    assert_eq!(changed.tree.home.number(excluded), 3);

    // Nothing has changed: nothing is sent.
    let updates = |it: &Receiver| it.shelf.kept().updates;
    let before = (updates(&changed.far), updates(&changed.plain));
    changed.tree.run(false);
    assert_eq!((updates(&changed.far), updates(&changed.plain)), before);

    // Another setting of a transformation is for the output behind it alone.
    changed.told(&["connection", "edit", "tags", "set=label=new"]);
    changed.tree.run(false);
    assert_eq!(changed.page()["label"], "new");
    assert_eq!(updates(&changed.plain), before.1, "it has nothing to do with it");

    // What is let through now is there, and what is not any more is gone.
    changed.told(&["connection", "edit", "pages", "types=text/plain"]);
    changed.tree.run(false);
    assert_eq!(changed.count(), (3, 4));
    assert_eq!(changed.page(), Json::Null, "it was removed");
    changed.told(&["connection", "edit", "pages", "types="]);
    changed.tree.run(false);
    assert_eq!(changed.count(), (4, 4));
}

#[test]
fn documents_are_changed_on_their_way_on_sqlite() {
    documents_are_changed_on_their_way(Home::directory());
}

#[test]
fn documents_are_changed_on_their_way_on_postgres() {
    let Some(home) = Home::database() else { return };
    documents_are_changed_on_their_way(home);
}

/// A transformation that needs the bytes of documents gets them, although no output does.
#[test]
fn the_main_text_of_a_page_is_taken_out_of_its_bytes() {
    let far = Receiver::start();
    let more = format!(
        "[[jobs.docs.pipeline]]\ntransformation = \"main\"\n\
         [[jobs.docs.pipeline]]\ntransformation = \"short\"\nafter = 0\n\
         [[jobs.docs.pipeline]]\noutput = \"far\"\nafter = 1\n\
         [connections.transformation.main]\nconnector = \"html\"\nsettings.main = true\n\
         [connections.transformation.short]\nconnector = \"limiter\"\nsettings.max_chars = 30\n\
         [connections.output.far]\nconnector = \"webhook\"\nsettings.url = {:?}\n",
        far.server.url()
    );
    let tree = Tree::with(Home::directory(), &more);
    let sentence = "The keeper wrote down what he saw of the sea each morning. ".repeat(12);
    let page = format!(
        "<title>Log</title><nav><a href=/>Home</a> <a href=/shop>Shop</a></nav><article>\
         <p>{sentence}</p><p>{sentence}</p></article><footer>Imprint and cookies</footer>"
    );
    tree.write("page.html", &page);
    tree.run(false);
    let texts = far.shelf.field("text");
    let (_, text) = texts.iter().find(|it| it.0.ends_with("page.html")).unwrap();
    assert_eq!(text, "The keeper wrote down what he ");
}
