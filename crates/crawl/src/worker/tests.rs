//! Workers that run for real, in the process of the test: on a small web site or a directory,
//! with faults, late answers and wrong clocks.

mod hostile;
mod interrupts;
mod panics;
mod stalls;
mod world;
