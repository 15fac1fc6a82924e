//! What the operating system says of this process, under the names that every dashboard knows. On Linux; elsewhere there is
//! only when it began.

use std::fmt;
use std::path::Path;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// What times are counted in below `/proc`; on every architecture that we run on.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn register(registry: &mut Registry, started: i64) {
    registry.register_collector(Box::new(ProcessCollector { started }));
}

#[derive(Debug)]
struct ProcessCollector {
    started: i64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, value: Option<i64>| {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        let (status, limits) = (read("status"), read("limits"));
        let kilobytes = |name: &str| number_after(&status, name).map(|count| count * 1024);
        gauge("process_start_time_seconds", "When the service began", Some(self.started))?;
        gauge("process_resident_memory_bytes", "Memory in use", kilobytes("VmRSS:"))?;
        gauge("process_virtual_memory_bytes", "Address space in use", kilobytes("VmSize:"))?;
        gauge("process_threads", "Threads", number_after(&status, "Threads:"))?;
        gauge("process_open_fds", "Open file descriptors", open_files())?;
        let files_max = number_after(&limits, "Max open files");
        gauge("process_max_fds", "File descriptors that may be open", files_max)?;
        let Some(seconds) = processor_seconds(&read("stat")) else { return Ok(()) };
        let counter = ConstCounter::new(seconds);
        let help = "Processor time used";
        let kind = counter.metric_type();
        counter.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?)
    }
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new("/proc/self").join(name)).unwrap_or_default()
}

fn open_files() -> Option<i64> {
    let files = std::fs::read_dir("/proc/self/fd").ok()?;
    // Without the one that lists them.
    i64::try_from(files.count()).ok().map(|count| count - 1)
}

/// The first number behind a name at the beginning of a line.
fn number_after(text: &str, name: &str) -> Option<i64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// User and system time: fields 14 and 15. The second one is a name in parentheses, which may hold anything.
fn processor_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok().map(f64::from);
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_the_kernel_writes() {
        let stat = "12 (a) b) S 1 1 1 0 -1 4194560 500 0 0 0 150 50 0 0 20 0 8 0 100 1 1";
        assert_eq!(processor_seconds(stat), Some(2.0));
        assert_eq!(processor_seconds(""), None);
        assert_eq!(number_after("VmSize:\t  200 kB\nVmRSS:\t  100 kB\n", "VmRSS:"), Some(100));
        let limits = "Max open files            1024                 4096                 files\n";
        assert_eq!(number_after(limits, "Max open files"), Some(1024));
        assert_eq!(number_after("Max open files unlimited unlimited", "Max open files"), None);
    }
}
