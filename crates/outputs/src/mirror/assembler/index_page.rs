//! `index.html` of the root folder: leads a reader to the site's own first page, and lists the
//! columns for whoever comes without.

use crate::mirror::kind::{Extension, Kind, page_path};
use crate::mirror::settings::Names;
use page::mirror::dir_index::{DirIndex, IndexNode};
use page::mirror::names::relative_reference;
use page::mirror::xfile::{Content, NodeKind};

/// Links of the page; a site with more columns is found through its own pages.
const LINKS_MAX: usize = 200;

/// The page, as UTF-8.
pub(super) fn index_page(index: &DirIndex, names: Names) -> Vec<u8> {
    let root = index.walk().next().map(|visited| visited.node);
    let title = root.map_or("", |node| if node.name.is_empty() { &node.url } else { &node.name });
    let refresh = root.and_then(|node| reference(node, names)).map_or_else(String::new, |to| {
        format!("<meta http-equiv=\"refresh\" content=\"0;url={}\">\n", escaped(&to))
    });
    let mut page = format!(
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n{refresh}<title>{}</title>\n\
         </head>\n<body>\n<h1>{}</h1>\n<ul>\n",
        escaped(title),
        escaped(title)
    );
    let shown = index.walk().filter(|visited| visited.node.kind == Some(NodeKind::Column));
    let pages = index.walk().filter(|visited| visited.node.kind != Some(NodeKind::Column));
    let linked = shown.chain(pages).filter_map(|visited| {
        let to = reference(visited.node, names)?;
        let name =
            if visited.node.name.is_empty() { &visited.node.url } else { &visited.node.name };
        Some(format!("<li><a href=\"{}\">{}</a></li>\n", escaped(&to), escaped(name)))
    });
    linked.take(LINKS_MAX).for_each(|link| page.push_str(&link));
    page.push_str("</ul>\n</body>\n</html>\n");
    page.into_bytes()
}

/// Where a node's file is, seen from the root folder.
fn reference(node: &IndexNode, names: Names) -> Option<String> {
    let Content::Stored(stored) = &node.content else { return None };
    let is_named_by_url = Kind::of(&stored.media_type, false).is_named_by_url();
    let path =
        is_named_by_url.then(|| page_path(&node.url, Extension::of(&stored.media_type), names))?;
    Some(relative_reference(super::INDEX, &path))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            ch => out.push(ch),
        }
    }
    out
}
