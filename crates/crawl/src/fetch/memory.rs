//! Memory for bodies that are on their way, shared by all requests of a process.
//!
//! A short body needs no permission. A longer one takes room in steps, each as large as what it
//! has, and waits while there is none. One body at a time may grow without room, so that bodies
//! which wait for each other come to an end. Room is given back when the bytes are dropped, not
//! when the last of them has come.
//!
//! Invariant: bodies of more than [`FREE_BYTES`] have at most [`ROOM_BYTES`] and one longest body
//! together, but for what the piece that came last is unpacked to.

use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What every body may have: most pages are shorter.
pub const FREE_BYTES: usize = 256 * 1024;
/// What longer ones may have together.
pub const ROOM_BYTES: usize = 128 * 1024 * 1024;

/// The memory that bodies share. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyMemory {
    /// Room, in steps of [`FREE_BYTES`].
    room: Arc<Semaphore>,
    /// Who has this may grow without room.
    turn: Arc<Semaphore>,
}

/// What one body has of it.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    /// The body may have so many bytes.
    pub bytes: usize,
    taken: Option<OwnedSemaphorePermit>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Default for BodyMemory {
    fn default() -> BodyMemory {
        BodyMemory::new(ROOM_BYTES)
    }
}

impl Default for MemoryReservation {
    fn default() -> MemoryReservation {
        MemoryReservation { bytes: FREE_BYTES, taken: None, turn: None }
    }
}

impl BodyMemory {
    fn new(room_bytes: usize) -> BodyMemory {
        let room = Arc::new(Semaphore::new(room_bytes / FREE_BYTES));
        BodyMemory { room, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Gives a body as much again as it has, as soon as there is room.
    pub(super) async fn grow(&self, body: &mut MemoryReservation) {
        let steps = u32::try_from(body.bytes / FREE_BYTES).unwrap_or(u32::MAX);
        // Neither is ever closed.
        tokio::select! {
            biased;
            Ok(more) = self.room.clone().acquire_many_owned(steps) => {
                match &mut body.taken {
                    Some(taken) => taken.merge(more),
                    None => body.taken = Some(more),
                }
                body.bytes *= 2;
            }
            Ok(turn) = self.turn.clone().acquire_owned() => {
                body.turn = Some(turn);
                body.bytes = usize::MAX;
            }
        }
    }
}

impl MemoryReservation {
    /// The bytes of a body, with its room for as long as somebody has them.
    pub fn keep(self, bytes: Bytes) -> Bytes {
        struct AccountedBytes {
            bytes: Bytes,
            _room: MemoryReservation,
        }
        impl AsRef<[u8]> for AccountedBytes {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        match self.taken.is_none() && self.turn.is_none() {
            true => bytes,
            false => Bytes::from_owner(AccountedBytes { bytes, _room: self }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn bodies_that_wait_for_each_other_come_to_an_end_within_what_there_is() {
        let memory = BodyMemory::new(16 * FREE_BYTES);
        let mut bodies = JoinSet::new();
        for _ in 0..20 {
            let memory = memory.clone();
            bodies.spawn(async move {
                let mut room = MemoryReservation::default();
                // All of them want more than there is for one.
                while room.bytes < 32 * FREE_BYTES {
                    memory.grow(&mut room).await;
                    tokio::task::yield_now().await;
                }
                room.keep(Bytes::from_static(b"long"))
            });
        }
        while let Some(body) = bodies.join_next().await {
            drop(body.unwrap());
        }
        assert_eq!((memory.room.available_permits(), memory.turn.available_permits()), (16, 1));
    }

    #[tokio::test]
    async fn room_is_taken_until_the_last_copy_of_the_bytes_is_dropped() {
        let memory = BodyMemory::new(4 * FREE_BYTES);
        let mut room = MemoryReservation::default();
        memory.grow(&mut room).await;
        memory.grow(&mut room).await;
        assert_eq!((room.bytes, memory.room.available_permits()), (4 * FREE_BYTES, 1));
        memory.grow(&mut room).await;
        assert_eq!((room.bytes, memory.turn.available_permits()), (usize::MAX, 0));
        let body = room.keep(Bytes::from_static(b"long"));
        let part = body.slice(1..2);
        drop(body);
        assert_eq!(memory.turn.available_permits(), 0);
        drop(part);
        assert_eq!((memory.room.available_permits(), memory.turn.available_permits()), (4, 1));
        let short = MemoryReservation::default().keep(Bytes::from_static(b"short"));
        assert_eq!((&*short, memory.room.available_permits()), (&b"short"[..], 4));
    }
}
