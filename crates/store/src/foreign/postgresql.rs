//! A PostgreSQL database of somebody else's, read in transactions that cannot write.
//!
//! Every query is wrapped, so that the server turns all types but bytes into text and
//! sends no more of a value than may be held. Ids are sent as text, which the server reads
//! as what the query compares them with. Invariant: a client ends on a thread of its own,
//! because the driver panics when it ends inside an async task.

use super::sqlite::several;
use super::{
    CONNECT_TIMEOUT, Columns, ForeignValue, ID_BYTES_MAX, ROWS_AT_ONCE, VALUE_BYTES_MAX,
    check_shape, sized, stripped, too_long,
};
use crate::{Error, Result, ours};
use bytes::BytesMut;
use postgres::error::SqlState;
use postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use postgres::{CancelToken, Client, Config, NoTls, Statement, Transaction};
use std::time::Duration;

/// A silent connection is probed after this long.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// A connection whose bytes nobody acknowledges is given up after this long.
const UNANSWERED_MAX: Duration = Duration::from_secs(20);

pub(super) struct Reader {
    /// There until the end.
    client: Option<Client>,
}

impl Reader {
    pub(super) fn open(config: &Config, statement_max: Duration) -> Result<Reader> {
        let mut config = config.clone();
        // What comes last wins.
        let options = format!(
            "{} -c default_transaction_read_only=on -c statement_timeout={}ms \
             -c lock_timeout=20s -c idle_in_transaction_session_timeout=300s",
            config.get_options().unwrap_or_default(),
            statement_max.as_millis()
        );
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .application_name("driftline")
            .options(&options)
            .keepalives_idle(KEEPALIVE_IDLE)
            .tcp_user_timeout(UNANSWERED_MAX);
        let client = config.connect(NoTls).map_err(|error| {
            let reason = match Error::from(error) {
                Error::Unavailable { reason, .. } | Error::Statement { reason } => reason,
                other => other.to_string(),
            };
            Error::Unavailable { what: "the PostgreSQL database".into(), reason }
        })?;
        let mut reader = Reader { client: Some(client) };
        reader.refuse_ours()?;
        Ok(reader)
    }

    /// Refuses the database that this program has its own rows in.
    fn refuse_ours(&mut self) -> Result<()> {
        let mut transaction = self.transaction()?;
        let has_settings = "SELECT to_regclass('settings') IS NOT NULL
             AND to_regclass('schema_versions') IS NOT NULL";
        if !transaction.query_one(has_settings, &[]).map_err(failed)?.get::<_, bool>(0) {
            return Ok(());
        }
        let name = "SELECT CAST(value AS TEXT) FROM settings WHERE name = 'installation'";
        // Another program's table may have other columns; then it is none of ours.
        let found = transaction.query_opt(name, &[]).ok().flatten();
        let found = found.and_then(|row| row.try_get::<_, String>(0).ok());
        let found = found.and_then(|name| u128::from_str_radix(&name, 16).ok());
        match found.is_some_and(|name| ours::is_installation(name.to_be_bytes())) {
            true => Err(Error::Refused(format!("the PostgreSQL database: {}", ours::REFUSED))),
            false => Ok(()),
        }
    }

    /// What ends the statement that the server is at.
    pub(super) fn cancel_token(&self) -> Option<CancelToken> {
        self.client.as_ref().map(Client::cancel_token)
    }

    fn transaction(&mut self) -> Result<Transaction<'_>> {
        let gone = || Error::Unavailable { what: "PostgreSQL".into(), reason: "it ended".into() };
        let client = self.client.as_mut().ok_or_else(gone)?;
        client.build_transaction().read_only(true).start().map_err(failed)
    }

    pub(super) fn check(&mut self, sql: &str, takes_id: bool) -> Result<()> {
        let mut transaction = self.transaction()?;
        wrapped(&mut transaction, sql, takes_id).map(|_| ())
    }

    pub(super) fn ids(&mut self, sql: &str, name: &mut dyn FnMut(String)) -> Result<()> {
        let mut transaction = self.transaction()?;
        let (statement, _) = wrapped(&mut transaction, sql, false)?;
        let portal = transaction.bind(&statement, &[]).map_err(failed)?;
        loop {
            let rows = transaction.query_portal(&portal, ROWS_AT_ONCE).map_err(failed)?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                if let Some(id) = row.try_get::<_, Option<String>>(0).map_err(failed)? {
                    name(id);
                }
            }
        }
    }

    pub(super) fn row(&mut self, sql: &str, id: &str) -> Result<Option<Columns>> {
        let mut transaction = self.transaction()?;
        let (statement, names) = wrapped(&mut transaction, sql, true)?;
        let rows = transaction.query(&statement, &[&AsText(id)]).map_err(failed)?;
        let row = match rows.as_slice() {
            [] => return Ok(None),
            [row] => row,
            _ => return Err(several()),
        };
        let mut columns = Columns::new();
        for (index, name) in names.into_iter().enumerate() {
            let cell = if *row.columns()[index].type_() == Type::BYTEA {
                row.try_get::<_, Option<Vec<u8>>>(index).map_err(failed)?.map(ForeignValue::Bytes)
            } else {
                row.try_get::<_, Option<String>>(index).map_err(failed)?.map(ForeignValue::Text)
            };
            if let Some(cell) = cell {
                let cell = sized(&name, cell)?;
                columns.push((name, cell));
            }
        }
        Ok(Some(columns))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let client = self.client.take();
        // If there is no thread to be had, it ends here.
        let _ = std::thread::Builder::new().name("postgres".into()).spawn(move || drop(client));
    }
}

/// A query as it is asked, and the names of its columns.
fn wrapped(
    transaction: &mut Transaction<'_>,
    sql: &str,
    takes_id: bool,
) -> Result<(Statement, Vec<String>)> {
    let sql = stripped(sql);
    let inner = transaction.prepare(sql).map_err(failed)?;
    let columns = inner.columns();
    check_shape(columns.len(), inner.params().len(), takes_id)?;
    let mut aliases = Vec::new();
    let mut taken = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let (alias, most) = (format!("c{number}"), VALUE_BYTES_MAX + 1);
        if takes_id && *column.type_() == Type::BYTEA {
            taken.push(format!("substring({alias} FROM 1 FOR {most})"));
        } else if takes_id {
            taken.push(format!("left(CAST({alias} AS TEXT), {most})"));
        }
        aliases.push(alias);
    }
    let (taken, limit) = match takes_id {
        true => (taken.join(", "), "LIMIT 2"),
        false => (format!("left(CAST(c0 AS TEXT), {})", ID_BYTES_MAX + 1), ""),
    };
    // A comment at the end of the query ends with its line.
    let aliases = aliases.join(", ");
    let text = format!("SELECT {taken} FROM (\n{sql}\n) AS theirs ({aliases}) {limit}");
    let types: Vec<Type> = inner.params().to_vec();
    let statement = transaction.prepare_typed(&text, &types).map_err(failed)?;
    Ok((statement, columns.iter().map(|it| it.name().to_owned()).collect()))
}

/// What went wrong, by whether it may pass.
fn failed(error: postgres::Error) -> Error {
    match error.code() {
        Some(&SqlState::QUERY_CANCELED) => too_long(),
        _ => Error::from(error),
    }
}

/// Text that stands for a value of any type.
#[derive(Debug)]
struct AsText<'a>(&'a str);

impl ToSql for AsText<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}
