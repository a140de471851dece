//! One file for each table family: free functions over `&mut Tx`, SQL as text
//! beside the function that runs it. The caller owns the transaction.
//!
//! Every function that returns rows has a limit; every test runs on both databases.
