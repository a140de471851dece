//! Questions to the index, and what must be found.

use super::*;

impl World {
    /// Answers a question.
    pub fn ask(&self, question: &Question) -> std::result::Result<Answer, AnswerFailure> {
        let in_links = |targets: &[Option<Target>]| Ok(vec![0; targets.len()]);
        self.ask_within(question, SearchLimits::default(), &in_links)
    }

    /// Answers a question within limits.
    pub fn ask_within(
        &self,
        question: &Question,
        limits: SearchLimits,
        in_links: InLinks<'_>,
    ) -> std::result::Result<Answer, AnswerFailure> {
        let ServedIndex { shards, lag } = self.server.current(NOW_MS)?;
        let (fields, weights) = (&self.server.fields, Weights::default());
        let secured = &self.db.read(connections::secured)?;
        let asking = IndexSearcher { shards: &shards, fields, weights, in_links, secured, lag };
        asking.answer_within(question, limits)
    }

    /// Waits until the newest version is opened.
    pub fn refresh(&self) -> Result<()> {
        self.server.refresh().map(drop)
    }

    /// Documents that were loaded so far, of what is opened now.
    pub fn loads(&self) -> usize {
        let shards = self.server.shards();
        let stats = shards.searchers().map(|it| it.doc_store_cache_stats());
        stats.map(|it| it.cache_hits + it.cache_misses).sum()
    }

    /// The connection of all documents, with or without an authority group.
    pub fn is_secured_by(&self, group: Option<&str>) -> Result<()> {
        let group = group.map(str::to_owned);
        self.db.write(move |tx| {
            tx.execute("DELETE FROM connections", &[])?;
            tx.execute(
                "INSERT INTO connections (id, kind, connectionname, classname, config, maxcount,
                                          groupname, reindexed, version, changed_ms)
                 VALUES ($1, 'repository', 'site', 'web', '{}', 1, $2, 0, 1, 0)",
                &[CONNECTION.into(), group.as_deref().into()],
            )?;
            store::testing::sum_rows(tx)
        })
    }

    /// The URLs that a question finds, best first.
    pub fn found(&self, text: &str) -> Vec<String> {
        let question = Question { text: text.into(), limit: 100, ..Question::default() };
        match self.ask(&question) {
            Ok(answer) => answer.hits.into_iter().map(|hit| hit.url).collect(),
            Err(failed) => panic!("{text}: {failed}"),
        }
    }

    /// Every document is found by the words it has now, and by no others.
    pub fn check(&self) -> Result<()> {
        let all: Vec<String> = self.now.keys().cloned().collect();
        let mut found = self.found("common");
        found.sort();
        assert_eq!(found, all, "what is there");
        for (url, doc) in &self.now {
            let word = doc.facts.text.split(' ').nth(3).expect("its own word");
            assert_eq!(self.found(word), [url.as_str()], "{word}");
        }
        assert_eq!(self.server.shards().documents(), all.len() as u64, "none twice");
        Ok(())
    }
}
