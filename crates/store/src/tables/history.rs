//! Every activity, as the reports show it (table 11.11), with retention.

use crate::ids::{ConnectionId, JobId, Part};
use crate::{Result, Tx, Value};

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Activity {
    pub id: i64,
    pub connection: ConnectionId,
    pub job: Option<JobId>,
    /// Such as `fetch`, `robots`, `document ingest`, `job start`.
    pub kind: String,
    /// What it was about: a URL, a job's name.
    pub entity: String,
    pub bytes: Option<i64>,
    /// The class of the result: `OK`, `404`, `EXCLUDEDURL` …
    pub result: Option<String>,
    /// The result in words.
    pub description: Option<String>,
    pub start_ms: i64,
    pub end_ms: i64,
}

/// Writes activities, in the transaction of what they tell of.
pub fn append(tx: &mut Tx<'_>, part: Part, activities: &[Activity]) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = activities
        .iter()
        .map(|it| {
            vec![
                part.into(),
                it.id.into(),
                it.connection.into(),
                it.job.into(),
                (&it.kind).into(),
                (&it.entity).into(),
                it.bytes.into(),
                (&it.result).into(),
                (&it.description).into(),
                it.start_ms.into(),
                it.end_ms.into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO history (part, id, connectionid, jobid, activitytype, entityid, datasize,
                              resultcode, resultdesc, starttime, endtime)",
        &rows,
        "",
    )?;
    Ok(())
}

/// Activities of a connection in a part, oldest first, after a time and an id.
pub fn page(
    tx: &mut Tx<'_>,
    (part, connection): (Part, ConnectionId),
    (start_ms, id): (i64, i64),
    limit: u32,
) -> Result<Vec<Activity>> {
    tx.query(
        "SELECT id, connectionid, jobid, activitytype, entityid, datasize, resultcode, resultdesc,
                starttime, endtime
         FROM history
         WHERE part = $1 AND connectionid = $2 AND (starttime, id) > ($3, $4)
         ORDER BY starttime, id LIMIT $5",
        &[part.into(), connection.into(), start_ms.into(), id.into(), limit.into()],
        |row| {
            Ok(Activity {
                id: row.get(0)?,
                connection: row.get(1)?,
                job: row.get(2)?,
                kind: row.get(3)?,
                entity: row.get(4)?,
                bytes: row.get(5)?,
                result: row.get(6)?,
                description: row.get(7)?,
                start_ms: row.get(8)?,
                end_ms: row.get(9)?,
            })
        },
    )
}

/// Forgets activities of a connection that began before a time, at most `limit`.
/// Returns how many; call again while it is `limit`.
pub fn trim(
    tx: &mut Tx<'_>,
    (part, connection): (Part, ConnectionId),
    before_ms: i64,
    limit: u32,
) -> Result<u64> {
    tx.execute(
        "DELETE FROM history WHERE part = $1 AND id IN (
             SELECT id FROM history WHERE part = $1 AND connectionid = $2 AND starttime < $3
             ORDER BY starttime, id LIMIT $4)",
        &[part.into(), connection.into(), before_ms.into(), limit.into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    fn activity(id: i64, start_ms: i64) -> Activity {
        Activity {
            id,
            connection: ConnectionId(1),
            job: None,
            kind: "fetch".into(),
            entity: format!("http://example.com/{id}"),
            bytes: Some(id),
            result: Some("OK".into()),
            description: None,
            start_ms,
            end_ms: start_ms + 1,
        }
    }

    #[test]
    fn pages_follow_each_other_and_trimming_takes_the_oldest() {
        both_databases(|db| {
            let all: Vec<Activity> = (0..10).map(|id| activity(id, 100 + id / 3)).collect();
            let rows = all.clone();
            db.write(move |tx| append(tx, Part(0), &rows))?;
            let key = (Part(0), ConnectionId(1));
            let mut read = Vec::new();
            let mut after = (i64::MIN, i64::MIN);
            loop {
                let page = db.read(move |tx| page(tx, key, after, 4))?;
                let Some(last) = page.last() else { break };
                after = (last.start_ms, last.id);
                read.extend(page);
            }
            assert_eq!(read, all);
            assert_eq!(db.write(move |tx| trim(tx, key, 102, 4))?, 4);
            assert_eq!(db.write(move |tx| trim(tx, key, 102, 4))?, 2);
            let left = db.read(move |tx| super::page(tx, key, (i64::MIN, i64::MIN), 100))?;
            assert_eq!(left, all[6..]);
            Ok(())
        });
    }
}
