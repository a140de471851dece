//! What a member of the mirror is, and what its file is called.
//!
//! Invariant: a function of the URL, the media type and the role, so that a name never depends
//! on other members.

use super::digest::Digest;
use super::settings::Names;
use page::mirror::names::{HashName, path_name};

/// Endings of files, by the media types that have them. A number of this table is stored with
/// every member, so new ones come last.
const EXTENSIONS: &[(&str, &[&str])] = &[
    ("bin", &[]),
    ("html", &["text/html"]),
    ("xhtml", &["application/xhtml+xml"]),
    ("css", &["text/css"]),
    ("js", &["text/javascript", "application/javascript", "application/x-javascript"]),
    ("mjs", &["application/ecmascript", "text/ecmascript"]),
    ("png", &["image/png"]),
    ("jpg", &["image/jpeg", "image/jpg", "image/pjpeg"]),
    ("gif", &["image/gif"]),
    ("webp", &["image/webp"]),
    ("avif", &["image/avif"]),
    ("svg", &["image/svg+xml"]),
    ("ico", &["image/x-icon", "image/vnd.microsoft.icon"]),
    ("bmp", &["image/bmp"]),
    ("woff", &["font/woff", "application/font-woff", "application/x-font-woff"]),
    ("woff2", &["font/woff2", "application/font-woff2"]),
    ("ttf", &["font/ttf", "application/x-font-ttf", "application/font-sfnt", "font/sfnt"]),
    ("otf", &["font/otf", "application/x-font-otf", "application/vnd.ms-opentype"]),
    ("eot", &["application/vnd.ms-fontobject"]),
    ("mp4", &["video/mp4"]),
    ("webm", &["video/webm", "audio/webm"]),
    ("ogv", &["video/ogg"]),
    ("mp3", &["audio/mpeg", "audio/mp3"]),
    ("ogg", &["audio/ogg", "application/ogg"]),
    ("wav", &["audio/wav", "audio/x-wav"]),
    ("vtt", &["text/vtt"]),
    ("json", &["application/json", "application/manifest+json", "application/ld+json"]),
    ("xml", &["application/xml", "text/xml", "application/rss+xml", "application/atom+xml"]),
    ("pdf", &["application/pdf"]),
    ("txt", &["text/plain"]),
    ("wasm", &["application/wasm"]),
    ("md", &["text/markdown"]),
];

/// The folder of requisites.
pub(super) const ASSETS: &str = "assets";

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Kind {
    /// HTML that is rewritten, and is named by its URL.
    Page,
    /// A style sheet, which is rewritten and named by what comes of it.
    Sheet,
    /// Any other requisite, which is named by its bytes.
    Asset,
    /// A document that is no HTML and is shown as it is, named by its URL.
    Document,
}

impl Kind {
    /// Of a member. HTML is a page even where others need it (frames refer to each other in
    /// circles), and what only ever belongs to pages is a requisite even where it was linked to.
    pub(super) fn of(media_type: &str, is_requisite: bool) -> Kind {
        let essence = essence(media_type);
        let group = essence.split('/').next().unwrap_or("");
        match &*essence {
            "text/html" | "application/xhtml+xml" => Kind::Page,
            "text/css" => Kind::Sheet,
            _ if is_requisite || matches!(group, "image" | "font" | "audio" | "video") => {
                Kind::Asset
            }
            _ => Kind::Document,
        }
    }

    /// Whether its file is named by its URL.
    pub(super) fn is_named_by_url(self) -> bool {
        matches!(self, Kind::Page | Kind::Document)
    }
}

/// A media type without parameters, in small letters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// An ending of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extension(u8);

impl Extension {
    pub(super) fn of(media_type: &str) -> Extension {
        let essence = essence(media_type);
        let found = EXTENSIONS.iter().position(|(_, types)| types.contains(&&*essence));
        Extension(u8::try_from(found.unwrap_or(0)).unwrap_or(0))
    }

    pub(super) fn as_str(self) -> &'static str {
        EXTENSIONS[usize::from(self.0)].0
    }
}

/// The path below the webroot of what is named by its URL.
pub(super) fn page_path(url: &str, extension: Extension, names: Names) -> String {
    let extension = extension.as_str();
    match names {
        Names::Hash => HashName::of(url).path(&format!(".{extension}")),
        Names::Path => {
            let path = path_name(url, extension);
            match path.split_once('/') {
                // A host of that name; no path name ends its first part like this.
                Some((top, rest)) if is_reserved(top) => format!("{top}~/{rest}"),
                _ => path,
            }
        }
    }
}

/// Whether the root folder has something of ours under this name.
fn is_reserved(name: &str) -> bool {
    matches!(name, super::assembler::INDEX | super::assembler::DIR_INDEX | ASSETS)
}

/// The path below the webroot of a requisite.
pub(super) fn asset_path(name: &Digest, extension: Extension) -> String {
    format!("{ASSETS}/{}.{}", name.path(), extension.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_what_its_media_type_and_its_role_say() {
        assert_eq!(Kind::of("text/HTML; charset=gbk", true), Kind::Page);
        assert_eq!(Kind::of("image/png", false), Kind::Asset);
        assert_eq!(Kind::of("text/css", false), Kind::Sheet);
        assert_eq!(Kind::of("application/pdf", false), Kind::Document);
        assert_eq!(Kind::of("application/pdf", true), Kind::Asset);
        assert_eq!(Extension::of("image/JPEG").as_str(), "jpg");
        assert_eq!(Extension::of("../../x").as_str(), "bin");
    }

    #[test]
    fn no_page_takes_the_name_of_what_is_in_the_root_folder() {
        let html = Extension::of("text/html");
        for url in ["https://assets/ab/x.html", "https://index.html/", "https://dir.xml/"] {
            let path = page_path(url, html, Names::Path);
            let top = path.split('/').next().unwrap();
            assert!(!is_reserved(top), "{path}");
        }
    }
}
