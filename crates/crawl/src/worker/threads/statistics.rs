//! The thread that keeps the statistics of a growing database fresh.
//!
//! Nothing depends on it but speed, so its trouble is nobody else's.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::dialect::Dialect;
use store::tables::statistics;
use store::{Db, Error, Result};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// The thread, where there is use for one.
pub struct Statistics {
    running: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Statistics {
    pub fn start(db: &Db) -> Result<Statistics> {
        if db.dialect() == Dialect::Sqlite {
            return Ok(Statistics { running: None });
        }
        let (stop, stopped) = sync_channel(0);
        let db = db.clone();
        let thread = std::thread::Builder::new()
            .name("statistics".into())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
                    let _ = db.write(statistics::refresh);
                }
            })
            .map_err(|error| Error::io("statistics", error))?;
        Ok(Statistics { running: Some((stop, thread)) })
    }

    pub fn stop(self) {
        if let Some((stop, thread)) = self.running {
            drop(stop);
            let _ = thread.join();
        }
    }
}
