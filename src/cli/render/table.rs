//! Plain text tables.

use rockpack_core::error::printable;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = TextTable::new(["name", ">n"]);
        table.row(["a".into(), "100".into()]);
        assert_eq!(table.render(), "name    n\na     100\n");
    }
}
