//! The time and the bytes of a run, for people.

use std::time::Duration;

use super::table::TextTable;
use super::units::bytes;
use rockpack_report::words::counted;
use rockpack_report::{StageSummary, Sum, Summary, WorkSummary};

/// The bytes and time of a stage in words: `3.94 MB in 1.2 s`, with the rate if it took a millisecond.
pub fn stage_text(count: u64, busy: Duration) -> String {
    let rate = rate(count, busy).map_or(String::new(), |rate| format!(" ({rate})"));
    let seconds = busy.as_secs_f64();
    if count > 0 {
        format!("{} in {seconds:.1} s{rate}", bytes(count))
    } else {
        format!("{seconds:.1} s")
    }
}

/// Bytes per second, if there were bytes and at least a millisecond.
fn rate(count: u64, busy: Duration) -> Option<String> {
    let wide = u128::from(count).saturating_mul(1000).checked_div(busy.as_millis());
    let rate = wide.and_then(|rate| u64::try_from(rate).ok()).filter(|_| count > 0);
    rate.map(|rate| format!("{}/s", bytes(rate)))
}

/// The stages with their times, then the compressed bytes, then the total.
pub fn summary_text(summary: &Summary) -> String {
    let Summary { seconds, cpu_seconds, memory, stages, compressed, .. } = summary;
    let mut text = String::new();
    if !stages.is_empty() {
        text.push_str(&stage_table(stages));
    }
    if !compressed.is_empty() {
        text.push_str(&work_table(compressed));
    }
    text.push_str(&format!("{seconds:.1} s"));
    if let Some(cpu) = cpu_seconds {
        text.push_str(&format!(", {cpu:.1} s of CPU"));
    }
    if let Some(memory) = memory {
        text.push_str(&format!(", at most {} of memory", bytes(*memory)));
    }
    if summary.packages > 0 {
        let (count, sum) = (counted(summary.packages, "package"), bytes(summary.package_bytes));
        text.push_str(&format!("; {count} of {sum}"));
    }
    text + "\n"
}

fn stage_table(stages: &[StageSummary]) -> String {
    let mut table = TextTable::new(["stage", ">time", ">bytes", ">rate"]);
    for StageSummary { stage, seconds, bytes: count } in stages {
        let rate = rate(*count, Duration::from_secs_f64(*seconds));
        table.row([
            stage.as_str().to_owned(),
            format!("{seconds:.1} s"),
            if *count > 0 { bytes(*count) } else { "-".to_owned() },
            rate.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.render()
}

fn work_table(compressed: &[WorkSummary]) -> String {
    let columns = ["compressed", ">count", ">before", ">after", ">from the cache", ">after"];
    let mut table = TextTable::new(columns);
    for WorkSummary { work, made, reused } in compressed {
        table.row([
            work.to_string(),
            made.count.to_string(),
            bytes_or_dash(made, made.before),
            bytes_or_dash(made, made.after),
            reused.count.to_string(),
            bytes_or_dash(reused, reused.after),
        ]);
    }
    table.render()
}

fn bytes_or_dash(sum: &Sum, size: u64) -> String {
    if sum.count > 0 { bytes(size) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockpack_report::{Stage, Work};

    #[test]
    fn a_summary_has_what_there_was() {
        let made = Sum { count: 2, before: 4000, after: 1000 };
        let summary = Summary {
            seconds: 2.04,
            cpu_seconds: Some(3.5),
            memory: None,
            stages: vec![
                StageSummary { stage: Stage::Split, seconds: 0.5, bytes: 1_000_000 },
                StageSummary { stage: Stage::Plan, seconds: 0.0, bytes: 0 },
            ],
            compressed: vec![WorkSummary { work: Work::Kernels, made, reused: Sum::default() }],
            packages: 1,
            package_bytes: 1234,
        };
        let expected = "\
stage   time    bytes       rate
split  0.5 s  1.00 MB  2.00 MB/s
plan   0.0 s        -          -
compressed  count   before    after  from the cache  after
kernels         2  4.00 kB  1.00 kB               0      -
2.0 s, 3.5 s of CPU; 1 package of 1.23 kB
";
        assert_eq!(summary_text(&summary), expected);
    }
}
