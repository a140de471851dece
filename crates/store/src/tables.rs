//! One file for each table family: free functions over `&mut Tx`, SQL as text
//! beside the function that runs it. The caller owns the transaction.
//!
//! Every function that returns rows has a limit; every test runs on both databases.

pub mod addresses;
pub mod audit;
pub mod authorities;
pub mod bins;
pub mod carrydown;
pub mod chunk_storage;
pub mod chunks;
pub mod claims;
pub mod connections;
pub mod counters;
pub mod cursors;
pub mod document_status;
pub mod documents;
pub mod events;
pub mod health;
pub mod history;
pub mod hopfilters;
pub mod hops;
pub mod ingests;
pub mod job_states;
pub mod jobs;
pub mod leases;
pub mod link_rows;
pub mod nodes;
pub mod notifications;
pub mod objects;
pub mod outages;
pub mod outlets;
pub mod overview;
pub mod pipelines;
pub mod queue;
pub mod registrations;
pub mod removals;
pub mod robots;
pub mod schedules;
pub mod sessions;
pub mod settings;
pub mod shards;
pub mod slots;
pub mod statistics;
pub mod throttles;
pub mod tokens;
pub mod traps;
