//! Versions that are opened while questions are asked.

use super::world::{Doc, NOW_MS, World};
use crate::search::ask::{Answer, Question};
use crate::testing::server::Server as Serving;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use store::objects::{Location, Objects, S3Settings};
use store::testing::{environment, on_sqlite, skipped};

/// What passes between a client and a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    /// Everything.
    All,
    /// Nothing; who asks waits.
    Held,
    /// Nothing; connections break.
    Broken,
}

/// A way to a store that can be closed.
struct Gate {
    state: Mutex<(Passing, usize)>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, passing: Passing) {
        self.state.lock().unwrap().0 = passing;
        self.changed.notify_all();
    }

    /// Waits until somebody waits at the gate, and says how many do.
    fn waiting(&self) -> usize {
        let state = self.state.lock().unwrap();
        self.changed.wait_while(state, |it| it.1 == 0).unwrap().1
    }

    /// Waits while the gate is held. Whether the way is open then.
    fn pass(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |it| it.0 == Passing::Held).unwrap();
        state.1 -= 1;
        state.0 == Passing::All
    }

    /// Carries bytes between a client and the store.
    fn carry(self: &Arc<Gate>, mut client: TcpStream, address: &str) {
        let Ok(mut store) = TcpStream::connect(address) else { return };
        let (mut back_from, mut back_to) =
            (store.try_clone().unwrap(), client.try_clone().unwrap());
        let back = std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            if !self.pass() || store.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = store.shutdown(Shutdown::Both);
        let _ = client.shutdown(Shutdown::Both);
        let _ = back.join();
    }
}

/// The objects of the test's bucket, straight and through a gate.
fn bucket(name: &str) -> Option<(Objects, Objects, Arc<Gate>, Serving)> {
    let Some(endpoint) = environment("DRIFTLINE_TEST_S3") else {
        skipped("S3: DRIFTLINE_TEST_S3 is not set");
        return None;
    };
    let variable = |name: &str| environment(name).unwrap_or_else(|| panic!("{name} is not set"));
    let keys = Some((variable("DRIFTLINE_TEST_S3_KEY"), variable("DRIFTLINE_TEST_S3_SECRET")));
    let bucket = variable("DRIFTLINE_TEST_S3_BUCKET");
    let path = format!("s3://{bucket}/search-test/{name}-{}", std::process::id());
    let gate = Arc::new(Gate { state: Mutex::new((Passing::All, 0)), changed: Condvar::new() });
    let address = endpoint.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let way = gate.clone();
    let serving = Serving::serving(0, move |client| way.carry(client, &address));
    let open = |endpoint: String| {
        let endpoint = Some(endpoint);
        let settings = S3Settings { endpoint, region: None, keys: keys.clone() };
        Objects::open(&Location::parse(&path, &settings).unwrap()).unwrap()
    };
    Some((open(endpoint), open(serving.url()), gate, serving))
}

fn ask(world: &World) -> Answer {
    let question = Question { text: "common".into(), ..Question::default() };
    world.ask(&question).unwrap_or_else(|failed| panic!("{failed}"))
}

#[test]
fn searches_are_answered_while_a_newer_version_is_fetched_from_a_slow_store() {
    on_sqlite(|db| {
        let Some((written, served, gate, _serving)) = bucket("slow") else { return Ok(()) };
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::with_objects(db, true, folder, (written, served))?;
        world.commit(&[Doc::numbered(0, 1, true)])?;
        world.follow()?;
        assert_eq!((ask(&world).total, ask(&world).behind_chunks), (1, 0));

        gate.set(Passing::Held);
        world.commit(&[Doc::numbered(1, 1, true)])?;
        world.follow()?;
        for _ in 0..5 {
            let answer = ask(&world);
            assert_eq!(answer.total, 1, "the version that was opened before answers");
            assert_eq!((answer.behind_chunks, answer.behind_ms), (1, NOW_MS));
        }
        assert_eq!(gate.waiting(), 1, "it is fetched once at a time");

        gate.set(Passing::Broken);
        assert_eq!(ask(&world).total, 1);
        gate.set(Passing::All);
        world.refresh()?;
        assert_eq!((ask(&world).total, ask(&world).behind_chunks), (2, 0));
        Ok(())
    });
}
