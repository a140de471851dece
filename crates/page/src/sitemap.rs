//! sitemap
