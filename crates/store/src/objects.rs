//! Bulky things: immutable objects in a directory or an S3 bucket.
//!
//! A synchronous face over the `object_store` crate, which is async. Each
//! [`Objects`] owns one thread with one small runtime; every call sends its work
//! there and blocks until it is done. **Never call from inside an async task**:
//! it would hold up that task's executor for as long as a disk or a network
//! takes. From async code go through a blocking thread.
//!
//! Invariants: an object is written once and never changed; when [`Objects::put`]
//! returns, a power cut no longer loses the object; when [`Objects::delete`]
//! returns, it does not come back. Every call ends within [`CALL_DEADLINE`].

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutPayload, RetryConfig,
};

mod directory;
mod files;
mod location;
mod path;
mod runtime;
#[cfg(test)]
mod tests;

use directory::Directory;
pub use location::{Location, S3Settings};
pub use path::{ChunkKey, ObjectPath};
use runtime::Runtime;

use crate::{Error, Result};

/// Bytes of one object. Objects pass through memory, so they are bounded.
pub const OBJECT_BYTES_MAX: u64 = 1 << 30;
/// Objects one [`Objects::list`] call returns at most.
pub const LIST_MAX: usize = 1_000;
/// The longest any call may take, retries included.
pub const CALL_DEADLINE: Duration = Duration::from_secs(180);
/// The longest a connection to the server may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest one request may take, body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Tries after the first, for answers that a server gives when it is busy.
const RETRIES_MAX: usize = 5;
/// No new try begins after this long.
const RETRY_WINDOW: Duration = Duration::from_secs(90);
/// The first pause between tries, and the longest.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A store of objects. Cloning it is cheap and shares its thread.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// Ours begin with this; empty, or without a slash at either end.
    prefix: String,
    /// What a directory needs beyond `object_store` to be durable.
    directory: Option<Arc<Directory>>,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct ListedObject {
    pub path: ObjectPath,
    pub bytes: u64,
    /// When it was written, by the store's clock.
    pub modified_ms: i64,
}

impl Objects {
    /// Opens a location. A directory is made when it does not exist; a bucket
    /// must exist, and is first asked when the first object is.
    pub fn open(location: &Location) -> Result<Objects> {
        let runtime = Arc::new(Runtime::start()?);
        match location {
            Location::Directory(root) => {
                let directory = Directory::open(root)?;
                let store = LocalFileSystem::new_with_prefix(directory.root())
                    .map_err(|error| failure(&root.display().to_string(), error))?
                    .with_fsync(true);
                let directory = Some(Arc::new(directory));
                Ok(Objects { store: Arc::new(store), runtime, prefix: String::new(), directory })
            }
            Location::S3 { bucket, prefix, settings } => {
                let store = bucket_builder(bucket, settings)
                    .build()
                    .map_err(|error| failure(&format!("s3://{bucket}"), error))?;
                let prefix = prefix.clone();
                Ok(Objects { store: Arc::new(store), runtime, prefix, directory: None })
            }
        }
    }

    /// Writes a new object and makes it durable.
    ///
    /// An object that exists is never overwritten. If it holds these very bytes
    /// the call succeeds: the answer to an earlier try may have been lost.
    pub fn put(&self, path: &ObjectPath, bytes: impl Into<Bytes>) -> Result<()> {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        if size > OBJECT_BYTES_MAX {
            let what = format!("object {path}");
            return Err(Error::TooLarge { what, bytes: size, max: OBJECT_BYTES_MAX });
        }
        let (store, at) = (self.store.clone(), self.at(path));
        let payload = PutPayload::from(bytes);
        let kept = payload.clone();
        let answer = self.call(path, async move {
            store.put_opts(&at, payload, PutMode::Create.into()).await.map(drop)
        })?;
        match answer {
            Ok(()) => {}
            Err(object_store::Error::AlreadyExists { .. }) => {
                let found = self.get(path)?;
                let same = found.len() as u64 == size && starts_through(&found, &kept);
                if !same {
                    let reason = "it exists already, with other bytes".to_owned();
                    return Err(Error::Object { path: path.to_string(), reason });
                }
                if let Some(directory) = &self.directory {
                    directory.sync_file(path)?;
                }
            }
            Err(error) => return Err(failure(path.as_str(), error)),
        }
        match &self.directory {
            Some(directory) => directory.sync_ancestors(path),
            None => Ok(()),
        }
    }

    /// The whole object. A missing one is an error: whoever asks has a row that names it.
    pub fn get(&self, path: &ObjectPath) -> Result<Vec<u8>> {
        let (store, at, name) = (self.store.clone(), self.at(path), path.to_string());
        let answer = self.call(path, async move {
            let found = store.get(&at).await.map_err(|error| failure(&name, error))?;
            if found.meta.size > OBJECT_BYTES_MAX {
                let (bytes, max) = (found.meta.size, OBJECT_BYTES_MAX);
                return Err(Error::TooLarge { what: format!("object {name}"), bytes, max });
            }
            found.bytes().await.map_err(|error| failure(&name, error))
        })?;
        answer.map(Vec::from)
    }

    /// `len` bytes from `offset`. An object that ends before is an error.
    pub fn get_range(&self, path: &ObjectPath, offset: u64, len: u64) -> Result<Vec<u8>> {
        let end = offset.checked_add(len).filter(|_| len <= OBJECT_BYTES_MAX);
        let Some(end) = end else {
            let what = format!("a range of object {path}");
            return Err(Error::TooLarge { what, bytes: len, max: OBJECT_BYTES_MAX });
        };
        if len == 0 {
            return Ok(Vec::new());
        }
        let (store, at) = (self.store.clone(), self.at(path));
        let answer = self.call(path, async move { store.get_range(&at, offset..end).await })?;
        let short = |found: u64| {
            let reason = format!("bytes {offset}..{end} asked, {found} are there");
            Error::corrupt(format!("object {path}"), reason)
        };
        match answer {
            Ok(bytes) if bytes.len() as u64 == len => Ok(bytes.into()),
            Ok(bytes) => Err(short(offset + bytes.len() as u64)),
            // Stores differ in how they refuse a range outside the object, so ask its size.
            Err(error) => match self.head(path) {
                Ok(Some(size)) if size < end => Err(short(size)),
                _ => Err(failure(path.as_str(), error)),
            },
        }
    }

    /// The size of an object, or `None` when there is no such object.
    pub fn head(&self, path: &ObjectPath) -> Result<Option<u64>> {
        let (store, at) = (self.store.clone(), self.at(path));
        match self.call(path, async move { store.head(&at).await })? {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure(path.as_str(), error)),
        }
    }

    /// Deletes an object, and what a killed writer left of it. A missing one is fine.
    pub fn delete(&self, path: &ObjectPath) -> Result<()> {
        let (store, at) = (self.store.clone(), self.at(path));
        match self.call(path, async move { store.delete(&at).await })? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failure(path.as_str(), error)),
        }
        match &self.directory {
            Some(directory) => directory.finish_delete(path),
            None => Ok(()),
        }
    }

    /// Up to `limit` (at most [`LIST_MAX`]) objects under the directory-like
    /// `prefix`, in byte order, beginning behind `after`.
    ///
    /// A bucket answers from its index. A directory is walked whole for each
    /// call, in bounded memory: listing is for checks, not for daily work.
    pub fn list(
        &self,
        prefix: &ObjectPath,
        after: Option<&ObjectPath>,
        limit: usize,
    ) -> Result<Vec<ListedObject>> {
        let limit = limit.min(LIST_MAX);
        let (store, under) = (self.store.clone(), self.at(prefix));
        let offset = after.map(|after| self.at(after));
        let in_order = self.directory.is_none();
        let ours = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let name = prefix.to_string();
        self.call(prefix, async move {
            let mut smallest = BTreeSet::new();
            let mut stream = match &offset {
                Some(offset) => store.list_with_offset(Some(&under), offset),
                None => store.list(Some(&under)),
            };
            while let Some(meta) = stream.next().await {
                let meta = meta.map_err(|error| failure(&name, error))?;
                let text = meta.location.as_ref().get(ours..).unwrap_or_default();
                // What has not one of our names is not ours to report or to delete.
                let Ok(path) = ObjectPath::parse(text) else { continue };
                let modified_ms = meta.last_modified.timestamp_millis();
                smallest.insert(ListedObject { path, bytes: meta.size, modified_ms });
                if smallest.len() > limit {
                    smallest.pop_last();
                }
                if in_order && smallest.len() == limit {
                    break;
                }
            }
            Ok(smallest.into_iter().collect())
        })?
    }

    fn at(&self, path: &ObjectPath) -> Path {
        match self.prefix.as_str() {
            "" => Path::from(path.as_str()),
            prefix => Path::from(format!("{prefix}/{path}")),
        }
    }

    fn call<T: Send + 'static>(
        &self,
        path: &ObjectPath,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        self.runtime.run(CALL_DEADLINE, work).ok_or_else(|| {
            let reason = format!("no answer within {} s", CALL_DEADLINE.as_secs());
            Error::Unavailable { what: format!("object {path}"), reason }
        })
    }
}

fn bucket_builder(bucket: &str, settings: &S3Settings) -> AmazonS3Builder {
    let plain_http =
        settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let client = ClientOptions::new()
        .with_allow_http(plain_http)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT);
    let (first, longest) = RETRY_PAUSE;
    let backoff = BackoffConfig { init_backoff: first, max_backoff: longest, base: 2.0 };
    let retry = RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_WINDOW, backoff };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(settings.region())
        .with_client_options(client)
        .with_retry(retry);
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some((id, secret)) = &settings.keys {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
    }
    builder
}

fn starts_through(found: &[u8], payload: &PutPayload) -> bool {
    let mut rest = found;
    payload.iter().all(|piece| match rest.strip_prefix(piece.as_ref()) {
        Some(behind) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// Sorts the library's errors by what a caller does about them.
fn failure(path: &str, error: object_store::Error) -> Error {
    use object_store::Error as Cause;
    let reason = error.to_string();
    match &error {
        Cause::NotFound { .. } => Error::corrupt(format!("object {path}"), "it is missing"),
        Cause::Generic { store: "S3", .. } | Cause::JoinError { .. } => {
            Error::Unavailable { what: format!("object {path}"), reason }
        }
        _ => match io_kind(&error) {
            Some(kind) => Error::io(path, std::io::Error::new(kind, reason)),
            None => Error::Object { path: path.to_owned(), reason },
        },
    }
}

fn io_kind(error: &object_store::Error) -> Option<std::io::ErrorKind> {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(io.kind());
        }
        cause = error.source();
    }
    None
}
