//! Plain text tables.

use rockpack_base::error::printable;

/// The alignment of cells in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Aligns to the left.
    Left,
    /// Aligns to the right, for numbers.
    Right,
}

/// Rows under a header, columns as wide as their widest cell.
#[derive(Debug)]
pub struct TextTable<const N: usize> {
    align: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> TextTable<N> {
    /// A table with these columns.
    pub fn new(columns: &[(&str, Align); N]) -> Self {
        let header = columns.map(|(name, _)| name.to_owned());
        Self { align: columns.map(|(_, align)| align), rows: vec![header] }
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
                match self.align[column] {
                    Align::Left => line.push_str(&format!("{cell}{pad}  ")),
                    Align::Right => line.push_str(&format!("{pad}{cell}  ")),
                }
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
        let mut table = TextTable::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a".into(), "100".into()]);
        assert_eq!(table.render(), "name    n\na     100\n");
    }
}
