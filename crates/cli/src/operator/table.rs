//! Columns for people.

use std::fmt;

/// Rows under a heading, each column as wide as its widest text.
#[derive(Debug)]
pub struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table without rows.
    pub fn new(heading: [&str; COLUMNS]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    /// Adds a row.
    pub fn row(&mut self, row: [&str; COLUMNS]) {
        self.rows.push(row.map(str::to_owned));
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; COLUMNS];
        for row in &self.rows {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = text.chars().count().max(*width);
            }
        }
        // Nothing stands behind the last one.
        if let Some(last) = widths.last_mut() {
            *last = 0;
        }
        widths
    }
}

impl<const COLUMNS: usize> fmt::Display for Table<COLUMNS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut separator = "";
            for (text, width) in row.iter().zip(&widths) {
                write!(f, "{separator}{text:width$}")?;
                separator = "  ";
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut table = Table::new(["A", "LONG", "LAST"]);
        table.row(["ääää", "x", "a b"]);
        assert_eq!(table.to_string(), "A     LONG  LAST\nääää  x     a b\n");
    }
}
