//! The binary: the allocator, and the library's `main`.

/// Half of what the link index costs is small pieces of memory that come and go by the
/// million; this allocator does that in half the time of the C library's, and gives back what
/// is free (bench/links, bench/crawl). How it behaves is set in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    driftline::main()
}
