//! Stand-in for the URL module that is being built on its own branch: the same
//! signatures, the plainest behaviour. It is replaced whole on merge.

/// How URLs are made canonical.
#[derive(Debug, Clone, Default)]
pub struct Policy;

/// Why a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// Resolves the links of one document.
#[derive(Debug)]
pub struct Resolver {
    base: url::Url,
    out: String,
}

impl Resolver {
    /// A resolver for the document at `document_url`.
    pub fn new(document_url: &str, _policy: &Policy) -> Result<Resolver, Refused> {
        let base = url::Url::parse(document_url).map_err(|_| Refused)?;
        Ok(Resolver { base, out: String::new() })
    }

    /// Uses the document's `<base href>`.
    pub fn set_base(&mut self, href: &str) {
        if let Ok(base) = self.base.join(href) {
            self.base = base;
        }
    }

    /// The absolute URL that `href` means.
    pub fn resolve(&mut self, href: &str) -> Result<&str, Refused> {
        let mut url = self.base.join(href).map_err(|_| Refused)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused);
        }
        url.set_fragment(None);
        self.out = url.into();
        Ok(&self.out)
    }
}
