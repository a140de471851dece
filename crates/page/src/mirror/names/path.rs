//! Path names: a readable relative path for a URL, however hostile.
//!
//! A part of the URL that is *plain* (small ASCII letters, digits, `-`, `_`, `.`, and nothing
//! that a file system treats in its own way) is taken as it is. A file keeps its name when it
//! ends in the extension of its type, and gets `~.html` behind it otherwise; a `/` at the end
//! is `/index.html`. Everything else is made readable and gets `~` and a hash behind it: no
//! plain name has a `~`, so no two URLs share a name. A directory whose name ends like that
//! of a file gets a hash too.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};
use url::Url;

/// Bytes of one component; file systems allow 255, and some tools add an ending.
pub const COMPONENT_BYTES_MAX: usize = 200;
/// Bytes of a whole path; the least that is common for one is 1,024 (macOS).
pub const PATH_BYTES_MAX: usize = 1_000;
/// Characters of the hash behind a `~`: 80 bits.
const HASH_CHARS: usize = 16;
/// The longest extension taken.
const EXTENSION_BYTES_MAX: usize = 10;
/// The directory of files whose own directories would be too many.
const DEEP: &str = "deep~";

/// What a relative reference to a path name writes with `%`.
#[rustfmt::skip]
pub(super) const REFERENCE_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'=').remove(b',').remove(b'+');

/// The path of the document at `url` below the webroot, such as `example.com/a/b.html`.
///
/// `extension` is that of its media type, without a dot; `html` also accepts `htm` and `xhtml`
/// where the URL ends so.
pub fn path_name(url: &str, extension: &str) -> String {
    let extension = checked_extension(extension);
    let parsed = Url::parse(url).ok().filter(|it| it.has_host() && it.path().starts_with('/'));
    let Some(parsed) = parsed else {
        return format!("other~/{}", hashed_file(url, &extension, url));
    };
    let whole = path_of(url, &parsed, &extension);
    if whole.len() <= PATH_BYTES_MAX {
        return whole;
    }
    let last = url.trim_end_matches('/').rsplit('/').next().unwrap_or(url);
    format!("{DEEP}/{}", hashed_file(last, &extension, url))
}

/// The path by the URL's own directories, or the beginning of one that is too long.
fn path_of(url: &str, parsed: &Url, extension: &str) -> String {
    let mut path = host_directory(parsed);
    let mut segments: Vec<&str> = parsed.path()[1..].split('/').collect();
    let last = segments.pop().unwrap_or("");
    for (at, segment) in segments.iter().enumerate() {
        path.push('/');
        let keeps_name = is_plain(segment) && !ends_like_a_file(segment);
        if keeps_name && segment.len() <= COMPONENT_BYTES_MAX {
            path.push_str(segment);
        } else {
            path.push_str(&hashed(&readable(segment), "", &segments[..=at].join("/")));
        }
        if path.len() > PATH_BYTES_MAX {
            return path;
        }
    }
    path.push('/');
    let has_more = parsed.query().is_some() || parsed.fragment().is_some();
    path.push_str(&if !has_more && parsed.as_str() == url {
        file_name(last, extension, url)
    } else {
        let more = [parsed.query(), parsed.fragment()];
        let more = more.into_iter().flatten().filter(|part| !part.is_empty());
        let parts: Vec<&str> = std::iter::once(last).chain(more).collect();
        hashed_file(&parts.join("_"), extension, url)
    });
    path
}

/// The name of a file without query, fragment or anything else that is not in its path.
fn file_name(last: &str, extension: &str, url: &str) -> String {
    if last.is_empty() {
        return format!("index.{extension}");
    }
    let stem = stem_of(last, extension);
    let fits = last.len() + extension.len() + "~.".len() <= COMPONENT_BYTES_MAX;
    if !is_plain(last) || !fits || stem == Some("index") {
        return hashed_file(last, extension, url);
    }
    match stem {
        Some(_) => last.to_owned(),
        None => format!("{last}~.{extension}"),
    }
}

/// What stands before the extension, if the name has that of its type.
fn stem_of<'a>(name: &'a str, extension: &str) -> Option<&'a str> {
    let (stem, ending) = name.rsplit_once('.')?;
    let is_it = match extension {
        "html" => matches!(ending, "html" | "htm" | "xhtml"),
        "jpg" => matches!(ending, "jpg" | "jpeg"),
        _ => ending == extension,
    };
    (is_it && !stem.is_empty()).then_some(stem)
}

/// The first component: the host, without what most sites have, `https` and its port.
fn host_directory(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    let mut directory = host.to_owned();
    if url.scheme() != "https" {
        directory.push('+');
        directory.push_str(url.scheme());
    }
    if let Some(port) = url.port() {
        directory.push_str(&format!("+{port}"));
    }
    let has_user = !url.username().is_empty() || url.password().is_some();
    let is_named = is_plain(host) && matches!(url.scheme(), "http" | "https") && !has_user;
    if is_named && directory.len() <= COMPONENT_BYTES_MAX {
        return directory;
    }
    hashed(&readable(&directory), "", &url[..url::Position::BeforePath])
}

/// The name of a file that is not plain: readable, `~`, hash, extension.
fn hashed_file(name: &str, extension: &str, url: &str) -> String {
    let stem = stem_of(name, extension).unwrap_or(name);
    hashed(&readable(stem), &format!(".{extension}"), url)
}

fn hashed(readable: &str, ending: &str, hash_of: &str) -> String {
    let room = COMPONENT_BYTES_MAX - HASH_CHARS - "~".len() - ending.len();
    let kept = &readable[..readable.floor_char_boundary(room)];
    format!("{kept}~{}{ending}", short_hash(hash_of))
}

/// 80 bits in base 32, in small letters: file systems that know no capitals tell them apart.
fn short_hash(of: &str) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let hash = blake3::hash(of.as_bytes());
    let bits = hash.as_bytes()[..10].iter().fold(0_u128, |all, &byte| all << 8 | u128::from(byte));
    let digit = |at: usize| char::from(DIGITS[(bits >> (5 * at) & 31) as usize]);
    (0..HASH_CHARS).map(digit).collect()
}

/// Whether a name stands for itself on every file system.
fn is_plain(name: &str) -> bool {
    let is_safe = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    !name.is_empty()
        && name.bytes().all(is_safe)
        && !name.starts_with(['.', '-'])
        && !name.ends_with('.')
        && !is_reserved(name)
}

/// Whether Windows takes the name for a device, whatever extension it has.
fn is_reserved(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or("").trim_end().to_lowercase();
    if ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"].contains(&base.as_str()) {
        return true;
    }
    let port = base.strip_prefix("com").or_else(|| base.strip_prefix("lpt"));
    let mut number = port.unwrap_or("").chars();
    matches!(number.next(), Some('0'..='9' | '¹' | '²' | '³')) && number.next().is_none()
}

/// Whether a directory's name could be that of a file: it has an extension with a letter.
fn ends_like_a_file(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ending.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// A name that can be read and is safe, but not one of a kind.
fn readable(name: &str) -> String {
    // A character that is kept comes from at most twelve: four bytes, each as `%xx`.
    let name = &name[..name.floor_char_boundary(12 * COMPONENT_BYTES_MAX)];
    let decoded = percent_decode_str(name).decode_utf8_lossy();
    let mut out = String::with_capacity(COMPONENT_BYTES_MAX);
    for ch in decoded.chars() {
        if out.len() >= COMPONENT_BYTES_MAX {
            break;
        }
        let is_kept = ch.is_alphanumeric() || matches!(ch, '-' | '_' | '.' | '=' | ',' | '+');
        out.push(if is_kept { ch } else { '_' });
    }
    let is_special = out.is_empty() || out.starts_with(['.', '-']) || is_reserved(&out);
    if is_special { format!("_{out}") } else { out }
}

/// An extension that is one: small letters and digits, a letter among them.
fn checked_extension(extension: &str) -> String {
    let lower = extension.to_ascii_lowercase();
    let is_one = lower.len() <= EXTENSION_BYTES_MAX
        && lower.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && lower.bytes().any(|byte| byte.is_ascii_lowercase());
    if is_one { lower } else { "bin".to_owned() }
}
