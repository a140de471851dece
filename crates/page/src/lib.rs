//! Bytes to facts. Pure: no I/O, no clock, no async, no database.
//!
//! Every function here takes bytes or text from outside and is bounded in time,
//! memory and depth by a named limit, whatever the input.
//!
//! In the order a page meets them: a link is cleaned by [`url`], placed by
//! [`domain`] and [`ids`], allowed by [`robots`]; the answer is named by
//! [`sniff`], decoded by [`charset`], read by [`html`] (or [`sitemap`], [`feed`], [`wat`],
//! [`extract`]) into [`facts`], and recognised again by [`fingerprint`]. [`forms`] is what
//! a login needs. For the link index, [`uri`] is the row form that it sorts by, [`outlinks`]
//! says which links count, and [`webindex`] reads pages as Webindex stored them. [`mirror`]
//! is what a browsable copy of a site is made of. [`bytesize`] writes numbers of bytes for people.

pub mod bytesize;
pub mod charset;
pub mod domain;
pub mod extract;
pub mod facts;
pub mod feed;
pub mod fingerprint;
pub mod forms;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod html;
pub mod ids;
pub mod mirror;
pub mod outlinks;
pub mod robots;
pub mod sitemap;
pub mod sniff;
pub mod text;
pub mod uri;
pub mod url;
pub mod wat;
pub mod webindex;
