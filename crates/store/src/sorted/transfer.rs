//! A whole map, carried elsewhere: into a file, out of one, or into another map.
//!
//! A file is a line that names the format, and for each row its part, the lengths of key
//! and value, and both; the end is marked. Invariants: what is carried is what one look
//! saw; a file that is cut, or is none, is refused and nothing of it is taken.

use super::{BulkReplacement, Family, Row, SortedMap, SortedRows, Span, View};
use crate::ids::Part;
use crate::{Error, Result};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How a file begins.
const FORMAT: &[u8] = b"driftline map 1\n";
/// Stands where a part would, behind the last row.
const END: u16 = u16::MAX;
/// Rows that are looked at at a time.
const STEP: usize = 2_000;
/// Batches of rows that may be on their way.
const BATCHES: usize = 4;
/// Bytes of a key or a value in a file.
const PIECE_BYTES_MAX: usize = 256 << 20;

type Batch = std::result::Result<Vec<Row>, String>;

/// Tells all rows of a map, part by part and family by family.
fn send_rows(
    view: &dyn View,
    families: &[Family],
    parts: u32,
    take: &mut dyn FnMut(Vec<Row>) -> Result<()>,
) -> Result<()> {
    for part in (0..i64::from(parts)).map(Part) {
        for family in families {
            let mut span = Span::prefix(&[family.byte]);
            loop {
                let rows = view.scan(part, &span, STEP)?;
                let Some((last, _)) = rows.last() else { break };
                span = span.behind(last);
                let row = |(key, value)| Row { part, key, value: Some(value) };
                take(rows.into_iter().map(row).collect())?;
            }
        }
    }
    Ok(())
}

/// Copies all of a map into another one, whose own rows go.
pub fn copy(
    from: &dyn SortedMap,
    to: &dyn SortedMap,
    families: &'static [Family],
    parts: u32,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (send, incoming) = sync_channel(BATCHES);
        let writing = scope.spawn(move || fill(to, families, parts, incoming));
        let sent = look(from, families, parts, &send);
        let end = sent.as_ref().map(|()| Vec::new()).map_err(ToString::to_string);
        let _ = send.send(end);
        drop(send);
        let filled = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Whoever could not write made the one who looks stop.
        filled.and(sent)
    })
}

fn look(
    from: &dyn SortedMap,
    families: &'static [Family],
    parts: u32,
    send: &SyncSender<Batch>,
) -> Result<()> {
    let send = send.clone();
    let mut sent = false;
    from.look(Box::new(move |view| {
        if std::mem::replace(&mut sent, true) {
            return Err(Error::invariant("the map changed while it was read"));
        }
        send_rows(view, families, parts, &mut |rows| {
            let sent = send.send(Ok(rows));
            sent.map_err(|_| Error::invariant("the rows could not be written"))
        })
    }))
}

/// Fills a map. An empty batch is the good end.
fn fill(
    to: &dyn SortedMap,
    families: &'static [Family],
    parts: u32,
    incoming: Receiver<Batch>,
) -> Result<()> {
    let mut rows = Vec::new().into_iter();
    let mut next = move || loop {
        if let Some(row) = rows.next() {
            return Ok(Some(row));
        }
        match incoming.recv() {
            Ok(Ok(batch)) if batch.is_empty() => return Ok(None),
            Ok(Ok(batch)) => rows = batch.into_iter(),
            Ok(Err(reason)) => return Err(Error::Refused(reason)),
            Err(_) => return Err(Error::invariant("the stream of rows broke off")),
        }
    };
    to.replace(&BulkReplacement { families, parts, leases: &[] }, &mut next)
}

/// Writes all of a map into a file, which must not be there, and syncs it.
pub fn export(
    map: &dyn SortedMap,
    families: &'static [Family],
    parts: u32,
    path: &Path,
) -> Result<()> {
    let failed = |error| Error::io(path, error);
    let file = std::fs::File::options().write(true).create_new(true).open(path).map_err(failed)?;
    let mut out = std::io::BufWriter::new(file);
    out.write_all(FORMAT).map_err(failed)?;
    std::thread::scope(|scope| {
        let (send, incoming) = sync_channel(BATCHES);
        let looking = scope.spawn(move || look(map, families, parts, &send));
        for batch in incoming {
            for row in batch.map_err(Error::Refused)? {
                write_row(&mut out, &row).map_err(failed)?;
            }
        }
        looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    out.write_all(&END.to_le_bytes()).map_err(failed)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)
}

fn write_row(out: &mut impl Write, row: &Row) -> std::io::Result<()> {
    let value = row.value.as_deref().unwrap_or_default();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    out.write_all(&u16::try_from(row.part.0).unwrap_or(END).to_le_bytes())?;
    out.write_all(&length(&row.key))?;
    out.write_all(&length(value))?;
    out.write_all(&row.key)?;
    out.write_all(value)
}

/// Fills a map from a file; its own rows go.
pub fn import(
    map: &dyn SortedMap,
    families: &'static [Family],
    parts: u32,
    path: &Path,
) -> Result<()> {
    let file = std::fs::File::open(path).map_err(|error| Error::io(path, error))?;
    let mut input = std::io::BufReader::new(file);
    let broken = |reason: &str| Error::corrupt(path.display().to_string(), reason);
    let mut format = [0; FORMAT.len()];
    let read = input.read_exact(&mut format);
    if read.is_err() || format != FORMAT {
        return Err(broken("it does not begin as a map that was written out"));
    }
    let mut next = || -> Result<Option<Row>> {
        let cut = |_| broken("it is cut");
        let mut head = [0; 2];
        input.read_exact(&mut head).map_err(cut)?;
        let part = u16::from_le_bytes(head);
        if part == END {
            return Ok(None);
        }
        let mut lengths = [0; 8];
        input.read_exact(&mut lengths).map_err(cut)?;
        let (key, value) = lengths.split_at(4);
        let mut piece = |length: &[u8]| {
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            if length > PIECE_BYTES_MAX {
                return Err(broken("a row is too long"));
            }
            let mut bytes = vec![0; length];
            input.read_exact(&mut bytes).map_err(cut)?;
            Ok(bytes)
        };
        let (key, value) = (piece(key)?, piece(value)?);
        Ok(Some(Row { part: Part(part.into()), key, value: Some(value) }))
    };
    let rows: &mut SortedRows<'_> = &mut next;
    map.replace(&BulkReplacement { families, parts, leases: &[] }, rows)
}
