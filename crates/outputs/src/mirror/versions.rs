//! Index files by bucket, each with the number of the x-file that it is as of.
//!
//! A step of a module writes the buckets that it changes under its own number, then the module's
//! cursor; a step that broke off has written numbers beyond the cursor, which are not read.
//! Invariant: reading at a cursor gives the same bytes whatever later steps have left behind.

use super::disk::Disk;
use store::{Error, Result};

/// A bucket is the first byte of a hash name.
pub(super) const BUCKETS: usize = 256;

/// The index files in a directory, as of a cursor.
pub(super) struct Versions<'d> {
    disk: &'d Disk,
    dir: &'static str,
    /// The number of the newest file of each bucket that the cursor covers; 0 for none.
    numbers: Vec<u64>,
    /// Files of other numbers.
    others: Vec<String>,
}

impl<'d> Versions<'d> {
    pub(super) fn open(disk: &'d Disk, dir: &'static str, cursor: u64) -> Result<Versions<'d>> {
        let mut numbers = vec![0; BUCKETS];
        let mut others = Vec::new();
        for name in disk.names(dir)? {
            let Some(Version { bucket, number }) = Version::parse(&name) else {
                let what = disk.place(dir).join(&name).display().to_string();
                return Err(Error::corrupt(what, "it is no index file of a mirror"));
            };
            let newest = &mut numbers[bucket];
            match number {
                number if number > cursor => others.push(name),
                number if number > *newest => {
                    others.extend((*newest > 0).then(|| file_name(bucket, *newest)));
                    *newest = number;
                }
                _ => others.push(name),
            }
        }
        Ok(Versions { disk, dir, numbers, others })
    }

    /// The bytes of a bucket and the path of its file, if it has one.
    pub(super) fn read(&self, bucket: usize) -> Result<Option<IndexFile>> {
        let number = self.numbers[bucket];
        if number == 0 {
            return Ok(None);
        }
        let path = format!("{}/{}", self.dir, file_name(bucket, number));
        let bytes = self.disk.read(&path)?;
        Ok(Some(IndexFile { bytes, path }))
    }

    /// Writes a bucket as of an x-file; reading goes on giving what was there before.
    pub(super) fn write(&self, bucket: usize, number: u64, bytes: &[u8]) -> Result<()> {
        self.disk.write(format!("{}/{}", self.dir, file_name(bucket, number)), bytes)
    }

    /// Removes what nothing reads any more. The cursor is on the disk.
    pub(super) fn tidy(&self) -> Result<()> {
        self.others.iter().try_for_each(|name| self.disk.remove(format!("{}/{name}", self.dir)))
    }
}

/// An index file as it was read.
pub(super) struct IndexFile {
    pub(super) bytes: Vec<u8>,
    pub(super) path: String,
}

fn file_name(bucket: usize, number: u64) -> String {
    format!("{bucket:02x}.{number}")
}

struct Version {
    bucket: usize,
    number: u64,
}

impl Version {
    fn parse(name: &str) -> Option<Version> {
        let (bucket, number) = name.split_once('.')?;
        let bucket = usize::from_str_radix(bucket, 16).ok().filter(|it| *it < BUCKETS)?;
        let number = number.parse().ok().filter(|it| *it > 0)?;
        (file_name(bucket, number) == name).then_some(Version { bucket, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_wrote_that_broke_off_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let disk = Disk::open(place.path()).unwrap();
        let open = |cursor| Versions::open(&disk, "index", cursor).unwrap();
        let text = |cursor| open(cursor).read(7).unwrap().map(|it| it.bytes);
        assert_eq!(text(9), None);
        for number in [1, 3, 4] {
            open(0).write(7, number, &[u8::try_from(number).unwrap()]).unwrap();
        }
        assert_eq!(text(0), None);
        assert_eq!([text(1), text(2), text(3)], [Some(vec![1]), Some(vec![1]), Some(vec![3])]);
        open(3).tidy().unwrap();
        assert_eq!(disk.names("index").unwrap(), ["07.3"]);
        disk.write("index/zz.1", b"").unwrap();
        let refused = Versions::open(&disk, "index", 1).err().unwrap().to_string();
        assert!(refused.contains("zz.1 is corrupt"), "{refused}");
    }
}
