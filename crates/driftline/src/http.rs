//! The HTTP API: the verbs' questions and answers, over the network.
//!
//! [`server`] listens; [`dispatch`] takes a request through its checks to its route, by way of
//! its [`bodies`] and the queue of the [`answer_pool`]; [`access`] says who may call, [`routes`]
//! what can be called; [`params`] reads what was given, [`reply`] sends what is answered,
//! [`problem`] says what went wrong; [`openapi`] is the document of it all, [`metrics`] what is
//! counted, [`log`] what is written down. Answers are those of the command line: one dispatcher
//! for both.

pub mod access;
pub mod answer_pool;
pub mod bodies;
pub mod dispatch;
pub mod entrance;
pub mod log;
pub mod metrics;
pub mod openapi;
pub mod params;
pub mod problem;
pub mod reply;
pub mod routes;
pub mod server;

#[cfg(test)]
mod tests;
