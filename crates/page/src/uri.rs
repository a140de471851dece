//! uri
