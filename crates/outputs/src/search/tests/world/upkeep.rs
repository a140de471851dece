//! What is done to the index to keep it: checks, damage, and making it anew.

use super::*;

impl World {
    /// Compares what is published with the rows, by the verb's own means.
    pub fn verified(&self) -> Result<(ShardVerifyResult, Vec<String>)> {
        self.compared(false)
    }

    /// The same, with the stored facts.
    pub fn fully_verified(&self) -> Result<(ShardVerifyResult, Vec<String>)> {
        self.compared(true)
    }

    fn compared(&self, is_full: bool) -> Result<(ShardVerifyResult, Vec<String>)> {
        let (shards, mut told) = (self.server.refresh()?, Vec::new());
        let (objects, fields) = (&self.context.objects, &self.server.fields);
        let verifying = VerifyContext { db: &self.db, objects, shards: &shards, fields };
        let verified = verifying.verify(is_full, &mut |what| told.push(what.to_owned()))?;
        told.sort();
        Ok((verified, told))
    }

    /// Files that are not what was published, as the verb tells of them.
    pub fn damaged(&self) -> Result<Vec<String>> {
        let mut told = Vec::new();
        let count = self.server.verify_files(&mut |what| told.push(what.to_owned()))?;
        assert_eq!(count, told.len() as u64);
        Ok(told)
    }

    /// Another process serves searches.
    pub fn serve_anew(&mut self) {
        let cache = self.folder.path().join("served");
        self.server = SearchServer::new(self.db.clone(), self.context.objects.clone(), cache);
    }

    /// Writes another process's index: it knows nothing of what this one has read.
    pub fn forget_checks(&mut self) {
        self.context.checked = CheckedFiles::default();
    }

    /// Files of what is published, largest first.
    pub fn published_files(&self) -> Vec<std::path::PathBuf> {
        let mut files: Vec<(i64, std::path::PathBuf)> = Vec::new();
        for part in (0..PARTS).map(|it| Part(it.into())) {
            for it in self.db.read(move |tx| shards::files(tx, part)).unwrap() {
                let path = ObjectPath::parse(&it.path).unwrap();
                files.push((-it.bytes, self.context.objects.file_of(&path).unwrap()));
            }
        }
        files.sort();
        files.into_iter().map(|it| it.1).collect()
    }

    /// The names of files of segments that are stored: as objects, and where they are written.
    pub fn segment_files(&self) -> (Vec<String>, Vec<String>) {
        let names = |below: &str| {
            let mut names = Vec::new();
            let mut folders = vec![self.folder.path().join(below)];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    match entry.path().is_dir() {
                        true => folders.push(entry.path()),
                        // `meta.json`, `.managed.json` and locks belong to no segment.
                        false if !name.starts_with(['.', 'm']) => names.push(name),
                        false => {}
                    }
                }
            }
            names.sort();
            names
        };
        (names("objects/shards"), names("written"))
    }

    /// The versions of all shards.
    pub fn versions(&self) -> Result<Vec<(Part, i64)>> {
        self.db.read(|tx| shards::versions(tx, 99))
    }

    /// Changes rows behind the index's back.
    pub fn tamper(&self, sql: &'static str) -> Result<u64> {
        self.db.write(move |tx| {
            let touched = tx.execute(sql, &[])?;
            store::testing::sum_rows(tx)?;
            Ok(touched)
        })
    }

    /// Changes a shard behind the back of everybody, and publishes it.
    pub fn publish_with(&mut self, part: u8, does: impl FnOnce(&mut Writer)) -> Result<()> {
        self.crash(false)?;
        let part = Part(part.into());
        let lease = lease(&self.db, part, cursors::SEARCH)?;
        let mut shard = Shard::open(&self.context, self.context.shard_of(part))?;
        does(&mut shard.writer);
        shard.publish(&[lease], &[])?;
        Ok(())
    }

    /// Gives a document another title in the index alone.
    pub fn retitle(&mut self, number: u8, title: &str) -> Result<()> {
        let mut doc = self.now[&format!("https://example.com/{number}")].clone();
        doc.facts.title = title.to_owned();
        let (part, hash) = (Part(doc.part.into()), DocHash::of(&doc.url));
        let rows = self.db.read(move |tx| documents::pointers(tx, part, &[hash]))?;
        let chunk = rows[0].chunk.expect("it is there");
        let list = self.db.read(settings::suffix_list)?;
        self.publish_with(doc.part, |writer| {
            let mut record = DocumentRecord::new(&doc.url, JOB.0, Change::Update);
            record.fetch = Some(Fetch { fetched_ms: 2_000_000_000_000, ..Fetch::default() });
            let (key, anchor_text) =
                (DocumentKey { connection: CONNECTION, hash }, AnchorText::default());
            let (record, facts, anchor_text) = (&record, &doc.facts, &anchor_text);
            let entry = IndexedDocument { key, place: (part, chunk), record, facts, anchor_text };
            let document = writer.fields.document(&entry, &list);
            writer.put(key, document).expect("it is taken");
        })
    }

    /// What is said of a question over which the library panics.
    pub fn panics(&self) -> String {
        let outcome = self
            .server
            .guarded(|_: &()| false, || -> std::result::Result<(), ()> { panic!("out of range") });
        outcome.expect_err("it panics").to_string()
    }

    /// What is said of a question over which the library finds the index damaged.
    pub fn finds_damage(&self) -> String {
        let answer = || Err::<(), _>(store::Error::corrupt("the search index", "odd bytes"));
        let outcome = self.server.guarded(|_| true, answer).flatten();
        outcome.expect_err("it is damaged").to_string()
    }

    /// Opens what is published.
    pub fn refreshed(&self) -> Result<()> {
        self.server.refresh().map(drop)
    }

    /// What writers have in their directories, and objects that are announced and not published.
    pub fn left_overs(&self) -> Result<(usize, i64)> {
        let mut beside = 0;
        for folder in std::fs::read_dir(&self.context.home).into_iter().flatten().flatten() {
            let names = std::fs::read_dir(folder.path()).unwrap().flatten();
            let is_beside =
                |it: &std::fs::DirEntry| it.path().extension().is_some_and(|it| it == "beside");
            beside += names.filter(is_beside).count();
        }
        let staged = "SELECT COUNT(*) FROM objects WHERE state = 'staged'";
        let staged = self.db.read(move |tx| tx.query_one(staged, &[], |row| row.get(0)))?;
        Ok((beside, staged))
    }

    /// Makes the index anew.
    pub fn rebuild(&mut self) -> Result<i64> {
        self.rebuild_with(Faults::default())
    }

    /// The same; the faults are called with every document on the way.
    pub fn rebuild_with(&mut self, faults: Faults) -> Result<i64> {
        self.crash(false)?;
        for part in (0..PARTS).map(|it| Part(it.into())) {
            self.leases.insert(part, lease(&self.db, part, cursors::SEARCH)?);
        }
        let leases: Vec<Lease> = self.leases.values().cloned().collect();
        let search = SearchIndexConsumer::anew(self.context.clone())?.with_faults(faults);
        rebuild::rebuild_with(search, &self.context, &leases)
    }

    /// Asks what is served now from another thread, as a fault of a rebuild does.
    pub fn asker(&self) -> impl Fn(&str) -> Vec<String> + Send + Sync + 'static {
        let (db, objects) = (self.db.clone(), self.context.objects.clone());
        let server = SearchServer::new(db, objects, self.folder.path().join("asked"));
        move |text| {
            let shards = server.refresh().unwrap();
            let in_links = |targets: &[Option<Target>]| Ok(vec![0; targets.len()]);
            let (fields, weights) = (&server.fields, Weights::default());
            let asking = IndexSearcher {
                shards: &shards,
                fields,
                weights,
                in_links: &in_links,
                secured: &[],
                lag: Lag::default(),
            };
            let question = Question { text: text.into(), limit: 100, ..Question::default() };
            let answer = asking.answer(&question).unwrap_or_else(|it| panic!("{it}"));
            answer.hits.into_iter().map(|hit| hit.url).collect()
        }
    }

    /// Segments of what is published.
    pub fn segments(&self) -> usize {
        let shards = self.server.shards();
        shards.searchers().map(|it| it.segment_readers().len()).sum()
    }
}
