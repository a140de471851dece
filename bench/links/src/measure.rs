//! Time that passed, processor time that was spent, memory that was needed.

use cpu_time::ProcessTime;
use std::time::Instant;

/// Both clocks, started together.
pub struct Watch {
    wall: Instant,
    cpu: ProcessTime,
}

/// What both say.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Seconds that passed.
    pub wall: f64,
    /// Seconds of all processors.
    pub cpu: f64,
}

impl Watch {
    /// Starts.
    pub fn start() -> Watch {
        Watch { wall: Instant::now(), cpu: ProcessTime::now() }
    }

    /// Reads.
    pub fn read(&self) -> Taken {
        Taken { wall: self.wall.elapsed().as_secs_f64(), cpu: self.cpu.elapsed().as_secs_f64() }
    }
}

impl Taken {
    /// So many things a second that passed, and a second of a processor.
    pub fn rates(&self, count: u64) -> String {
        let (wall, cpu) = (count as f64 / self.wall, count as f64 / self.cpu);
        format!("{wall:>9.0}/s by the clock, {cpu:>9.0} a CPU-second")
    }
}

/// The most memory this process ever had, in MB.
pub fn rss_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The median and the 99th of a hundred, in milliseconds.
pub fn percentiles(mut times_ms: Vec<f64>) -> (f64, f64) {
    times_ms.sort_by(f64::total_cmp);
    let at = |share: f64| times_ms[((times_ms.len() - 1) as f64 * share) as usize];
    (at(0.5), at(0.99))
}
