//! What is secret is sealed before it is written: settings of connections, which have
//! passwords in them, and cookies of sessions.
//!
//! A data directory has a file with its key beside the rows, made when it is first needed; a
//! database has none, so whoever works on it is told where the key is. A file may have
//! several keys, one a line: the first seals, all of them open, so that a key can be
//! changed. Invariants: what was sealed is never written in the open by who has a key; a
//! key is on the disk before anything that it sealed; no key is in a message.

use crate::{Error, Result};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a sealed text begins with. No JSON does.
const MARK: &str = "sealed:1:";
/// What texts are sealed for, so that nothing else that the key may seal is taken for one.
const PURPOSE: &str = "driftline row 1";
/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Keys of a file.
const KEYS_MAX: usize = 8;
/// Bytes of a file with keys that are read.
const FILE_BYTES_MAX: u64 = 4_096;
/// How a key is made by hand.
const MAKE: &str = "od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n'";

/// The keys of a database; clones share them.
#[derive(Clone, Default)]
pub struct Keys {
    source: KeySource,
}

#[derive(Clone, Default)]
enum KeySource {
    /// There are none: nothing is sealed.
    #[default]
    None,
    Given(Arc<[SealingKey]>),
    /// Those of a file, which is made when something is sealed.
    File {
        path: Arc<Path>,
        read: Arc<OnceLock<Vec<SealingKey>>>,
    },
}

struct SealingKey {
    /// What tells keys apart; it says nothing of the key.
    id: String,
    key: RandomizedNonceKey,
}

impl SealingKey {
    fn new(bytes: &[u8; KEY_BYTES]) -> Result<SealingKey> {
        let id = blake3::derive_key("driftline 2026 key id", bytes);
        let key = RandomizedNonceKey::new(&AES_256_GCM, bytes).map_err(|_| unusable())?;
        Ok(SealingKey { id: HEXLOWER.encode(&id[..4]), key })
    }
}

fn unusable() -> Error {
    Error::Refused("the key of secrets cannot be used on this machine".to_owned())
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys of a file that is there.
    pub fn of_file(path: &Path) -> Result<Keys> {
        refuse_shown(path)?;
        match read(path)? {
            Some(keys) => Ok(Keys { source: KeySource::Given(keys.into()) }),
            None => Err(Error::Refused(format!(
                "there is no file {} with the key of secrets; make one that only you can read: \
                 (umask 077; {MAKE} >{0})",
                path.display()
            ))),
        }
    }

    /// The keys of a file that is made when something is sealed.
    pub fn kept_in(path: &Path) -> Keys {
        let (path, read) = (path.into(), Arc::default());
        Keys { source: KeySource::File { path, read } }
    }

    /// Keys that every test knows.
    #[cfg(any(test, feature = "testing"))]
    pub fn of_tests() -> Keys {
        let key = SealingKey::new(&[7; KEY_BYTES]).expect("it is a key");
        Keys { source: KeySource::Given([key].into()) }
    }

    /// Whether what is secret can be sealed.
    pub fn can_seal(&self) -> bool {
        !matches!(self.source, KeySource::None)
    }

    fn known(&self) -> Result<&[SealingKey]> {
        match &self.source {
            KeySource::None => Ok(&[]),
            KeySource::Given(keys) => Ok(keys),
            KeySource::File { path, read: known } => {
                if let Some(keys) = known.get() {
                    return Ok(keys);
                }
                let Some(keys) = read(path)? else { return Ok(&[]) };
                Ok(known.get_or_init(|| keys))
            }
        }
    }

    /// A text as it is stored: sealed, if there is a key and something to hide.
    pub fn seal(&self, text: &str) -> Result<String> {
        if !self.can_seal() || matches!(text, "" | "{}") {
            return Ok(text.to_owned());
        }
        if let (KeySource::File { path, .. }, []) = (&self.source, self.known()?) {
            make(path)?;
        }
        let Some(SealingKey { id, key }) = self.known()?.first() else { return Err(unusable()) };
        let mut sealed = text.as_bytes().to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::from(PURPOSE), &mut sealed);
        let nonce = nonce.map_err(|_| unusable())?;
        sealed.splice(..0, nonce.as_ref().iter().copied());
        Ok(format!("{MARK}{id}:{}", BASE64URL_NOPAD.encode(&sealed)))
    }

    /// A text as it was, of what is stored.
    pub fn open(&self, stored: String) -> Result<String> {
        let Some(sealed) = stored.strip_prefix(MARK) else { return Ok(stored) };
        let corrupt = |reason: &str| Error::corrupt("a sealed text", reason.to_owned());
        let (id, text) = sealed.split_once(':').ok_or_else(|| corrupt("it was cut off"))?;
        let Some(key) = self.known()?.iter().find(|key| key.id == id) else {
            return Err(self.locked(id));
        };
        let mut sealed = BASE64URL_NOPAD
            .decode(text.as_bytes())
            .map_err(|_| corrupt("it has characters that are not its own"))?;
        let (nonce, sealed) =
            sealed.split_at_mut_checked(NONCE_LEN).ok_or_else(|| corrupt("it was cut off"))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| unusable())?;
        let opened = key.key.open_in_place(nonce, Aad::from(PURPOSE), sealed);
        let opened = opened.map_err(|_| corrupt("it is not what was sealed"))?;
        String::from_utf8(opened.to_vec()).map_err(|_| corrupt("it is no text"))
    }

    /// A stored text as the first of these keys stores it; `None` if it is stored so already, or
    /// is sealed with a key that nobody has: whoever needs it is told which one is missing.
    pub fn resealed(&self, old: &Keys, stored: String) -> Result<Option<String>> {
        if self.is_current(&stored)? {
            return Ok(None);
        }
        match old.open(stored) {
            Err(Error::Refused(_)) => Ok(None),
            opened => self.seal(&opened?).map(Some),
        }
    }

    fn is_current(&self, stored: &str) -> Result<bool> {
        let first = self.known()?.first();
        Ok(match (stored.strip_prefix(MARK), first) {
            (Some(sealed), Some(key)) => sealed.starts_with(&key.id),
            (Some(_), None) => false,
            (None, _) => !self.can_seal() || matches!(stored, "" | "{}"),
        })
    }

    fn locked(&self, id: &str) -> Error {
        let place = match &self.source {
            KeySource::File { path, .. } => format!("put it back into {}", path.display()),
            _ => "name the file that has it with --secrets-key".to_owned(),
        };
        Error::Refused(format!(
            "settings of connections are sealed with key {id}, which is not here; {place}, or, if it \
             is lost: driftline connection forget-sealed"
        ))
    }
}

/// Refuses a key that everybody can see. (That of a data directory is guarded by the
/// directory, wherever that is: some file systems know no owners.)
fn refuse_shown(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(about) if about.permissions().mode() & 0o007 != 0 => Err(Error::Refused(format!(
            "{}: everybody on this machine can read or change this key; chmod 600 it",
            path.display()
        ))),
        // Whoever reads it says what is wrong.
        _ => Ok(()),
    }
}

/// The keys of a file, if there is one.
fn read(path: &Path) -> Result<Option<Vec<SealingKey>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| Error::io(path, error))?,
    };
    let refused = |why: &str| Err(Error::Refused(format!("{}: {why}", path.display())));
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| Error::io(path, error))?;
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let bytes = HEXLOWER_PERMISSIVE.decode(line.as_bytes()).unwrap_or_default();
        let Ok(bytes) = <&[u8; KEY_BYTES]>::try_from(bytes.as_slice()) else {
            return refused(&format!("a line of it is no key of 64 hexadecimal digits; {MAKE}"));
        };
        keys.push(SealingKey::new(bytes)?);
    }
    match keys.len() {
        0 => refused(&format!("it has no key; make one: {MAKE}")),
        1..=KEYS_MAX => Ok(Some(keys)),
        more => refused(&format!("it has {more} keys, more than the {KEYS_MAX} allowed")),
    }
}

/// Makes a file with a new key, which is there whole or not at all.
fn make(path: &Path) -> Result<()> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| Error::io(path, error.into()))?;
    let building: PathBuf = path.with_extension("new");
    let written = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).truncate(true).write(true).mode(0o600).open(&building)?;
        writeln!(file, "{}", HEXLOWER.encode(&key))?;
        file.sync_all()?;
        std::fs::rename(&building, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|error| Error::io(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.key");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn what_was_sealed_is_opened_by_its_key_alone() {
        let (_folder, path) = file(&"a1".repeat(32), 0o600);
        let keys = Keys::of_file(&path).unwrap();
        let sealed = keys.seal("{\"password\":\"hunter2\"}").unwrap();
        assert!(sealed.starts_with(MARK) && !sealed.contains("hunter2"));
        assert_ne!(sealed, keys.seal("{\"password\":\"hunter2\"}").unwrap(), "each in its own way");
        assert_eq!(keys.open(sealed.clone()).unwrap(), "{\"password\":\"hunter2\"}");
        let (_folder, other) = file(&"b2".repeat(32), 0o600);
        let other = Keys::of_file(&other).unwrap();
        for stranger in [&other, &Keys::default()] {
            let refused = stranger.open(sealed.clone()).unwrap_err().to_string();
            assert!(refused.contains("--secrets-key") && !refused.contains("a1a1"), "{refused}");
        }
        for broken in [&sealed[..sealed.len() - 2], &sealed[..20], "sealed:1:"] {
            assert!(keys.open(broken.to_owned()).is_err(), "{broken}");
        }
        let mut turned = sealed.into_bytes();
        turned[40] ^= 1;
        assert!(keys.open(String::from_utf8(turned).unwrap()).is_err());
    }

    #[test]
    fn a_key_is_changed_by_a_line_before_it() {
        let (_folder, path) = file(&"a1".repeat(32), 0o600);
        let old = Keys::of_file(&path).unwrap().seal("cookies").unwrap();
        std::fs::write(&path, format!("{}\n\n{}\n", "C3".repeat(32), "a1".repeat(32))).unwrap();
        let keys = Keys::of_file(&path).unwrap();
        assert_eq!(keys.open(old.clone()).unwrap(), "cookies");
        let new = keys.seal("cookies").unwrap();
        assert!(!keys.is_current(&old).unwrap() && keys.is_current(&new).unwrap());
        assert!(!keys.is_current("in the open").unwrap() && keys.is_current("{}").unwrap());
        assert!(Keys::default().is_current("in the open").unwrap());
    }

    #[test]
    fn a_file_is_made_when_it_is_needed_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.key");
        let keys = Keys::kept_in(&path);
        assert_eq!(keys.open("{\"a\":1}".to_owned()).unwrap(), "{\"a\":1}");
        assert_eq!(keys.seal("{}").unwrap(), "{}", "nothing to hide");
        assert!(!path.exists());
        let sealed = keys.seal("secret").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(keys.open(sealed.clone()).unwrap(), "secret");
        assert_eq!(Keys::kept_in(&path).open(sealed.clone()).unwrap(), "secret", "after a restart");
        std::fs::remove_file(&path).unwrap();
        let lost = Keys::kept_in(&path).open(sealed).unwrap_err().to_string();
        assert!(lost.contains("put it back into"), "{lost}");
    }

    #[test]
    fn files_that_are_no_keys_are_refused_with_the_reason() {
        for (text, mode, why) in [
            ("a1".repeat(32), 0o644, "chmod 600"),
            ("a1".repeat(31), 0o600, "64 hexadecimal digits"),
            ("no key".to_owned(), 0o600, "64 hexadecimal digits"),
            ("\n".to_owned(), 0o600, "no key"),
            (format!("{}\n", "a1".repeat(32)).repeat(9), 0o600, "more than the 8"),
        ] {
            let (_folder, path) = file(&text, mode);
            let refused = Keys::of_file(&path).unwrap_err().to_string();
            assert!(refused.contains(why) && !refused.contains("a1a1"), "{refused}");
        }
        let gone = Keys::of_file(Path::new("/no/such.key")).unwrap_err().to_string();
        assert!(gone.contains("/no/such.key") && gone.contains("urandom"), "{gone}");
    }
}
