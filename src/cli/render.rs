//! Renders results in one style: lines, tables, numbers, commands, and the summary of a run.
//!
//! Names and texts from input may have control characters: `text_line!` and tables escape them.

use std::fmt::Arguments;
use std::time::Duration;

use rockpack_core::error::printable;
use rockpack_package::Format;
use rockpack_package::receipt::listing::Size;
use rockpack_report::words::counted;
pub(super) use rockpack_report::words::{bytes, shell_word};
use rockpack_report::{StageSummary, Sum, Summary, WorkSummary};

/// The hint where the codes of findings and checks are explained.
pub const EXPLAIN: &str = "`rockpack explain CODE` says what a code means and what solves it";

/// A line as by `format!`, with the control characters of its text escaped, and a line break.
macro_rules! text_line {
    ($($arguments:tt)*) => {
        $crate::cli::render::escaped_line(format_args!($($arguments)*))
    };
}

/// One line of `text`, with control characters and line breaks escaped.
pub(super) fn escaped_line(text: Arguments<'_>) -> String {
    let mut line = printable(&text.to_string()).into_owned();
    line.push('\n');
    line
}

/// Rows under a header, columns as wide as their widest cell.
#[derive(Debug)]
pub struct TextTable<const N: usize> {
    is_right: [bool; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> TextTable<N> {
    /// A table with these columns. A leading `>` aligns a column to the right, for numbers.
    pub fn new(columns: [&str; N]) -> Self {
        let header = columns.map(|name| name.trim_start_matches('>').to_owned());
        Self { is_right: columns.map(|name| name.starts_with('>')), rows: vec![header] }
    }

    /// Adds a row, whose cells are one line each.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| printable(&cell).into_owned()));
    }

    /// The table as text; every line has a line break.
    pub fn render(&self) -> String {
        let widest = (0..N).map(|column| {
            let lengths = self.rows.iter().map(|row| row[column].chars().count());
            lengths.max().unwrap_or(0)
        });
        let widths: Vec<usize> = widest.collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let [before, after] = if self.is_right[column] { [&*pad, ""] } else { ["", &*pad] };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// `words` with blanks between them, or `none`.
pub fn words_or(words: impl IntoIterator<Item: AsRef<str>>, none: &str) -> String {
    let words = Vec::from_iter(words.into_iter().map(|word| word.as_ref().to_owned()));
    if words.is_empty() { none.to_owned() } else { words.join(" ") }
}

/// A number of things, or a dash if there are none.
pub fn count_or_dash(count: usize) -> String {
    if count > 0 { count.to_string() } else { "-".to_owned() }
}

/// A byte count, with `~` before an estimate.
pub fn size(size: Size) -> String {
    if size.estimated { format!("~{}", bytes(size.bytes)) } else { bytes(size.bytes) }
}

/// The line about installed sizes, if packages of these formats include a `.deb`.
pub fn installed_legend(mut formats: impl Iterator<Item = Format>) -> &'static str {
    if formats.any(|format| format == Format::Deb) {
        "installed sizes of .deb packages count each file and folder in whole KiB, as Installed-Size does\n"
    } else {
        ""
    }
}

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
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = TextTable::new(["name", ">n"]);
        table.row(["a".into(), "100".into()]);
        assert_eq!(table.render(), "name    n\na     100\n");
    }

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
