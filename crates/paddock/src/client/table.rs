//! Tables with aligned columns.
//!
//! Cells contain untrusted text: control characters are replaced, so that they cannot control the
//! terminal.

use std::fmt::Write as _;

use terminal::measure_text_width;

const GAP: &str = "  ";

/// Rows under a header.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row. An empty cell becomes a dash, so that columns stay countable.
    pub(crate) fn row(mut self, cells: impl IntoIterator<Item = String>) -> Self {
        self.rows.push(cells.into_iter().map(|cell| cell_text(&cell)).collect());
        self
    }

    /// The table as newline-terminated lines.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|c| measure_text_width(c)).max()
        };
        let widths: Vec<usize> = (0..).map_while(width).collect();
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }
}

/// Header and cell function of a column.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// Renders a table with one row per item.
pub(crate) fn render<T>(items: &[T], columns: &[Column<T>]) -> String {
    let header: Vec<&str> = columns.iter().map(|(header, _)| *header).collect();
    let row = |table: Table, item| table.row(columns.iter().map(|(_, cell)| cell(item)));
    items.iter().fold(Table::new(&header), row).render()
}

/// Names and values, one pair per line.
pub(crate) fn fields(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines =
        pairs.iter().map(|(name, value)| line(&[(*name).to_owned(), cell_text(value)], &[width]));
    lines.collect()
}

/// One line of cells padded to `widths`, for streamed output. A cell without a width is not padded.
pub(crate) fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, cell) in cells.iter().enumerate() {
        let last = column + 1 == cells.len();
        let want = widths.get(column).filter(|_| !last).copied().unwrap_or(0);
        let blanks = want.saturating_sub(measure_text_width(cell));
        let gap = if last { "\n" } else { GAP };
        write!(line, "{cell}{:blanks$}{gap}", "").expect("writing to a String cannot fail");
    }
    line
}

/// Text for a cell: safe and never empty.
pub(crate) fn cell_text(cell: &str) -> String {
    let cell = clean(cell);
    if cell.is_empty() { "-".into() } else { cell }
}

/// Text on one line without control characters.
pub(crate) fn clean(text: &str) -> String {
    let blank = |c: char| if c.is_whitespace() { ' ' } else { '\u{fffd}' };
    text.chars().map(|c| if c.is_control() { blank(c) } else { c }).collect()
}

/// Container output without control characters except tabs.
pub(crate) fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Multi-line text without control characters.
pub(crate) fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_widest_cell() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Vec<_>>();
        let table = Table::new(&["ID", "NAME", "REASON"])
            .row(row(&["1", "a long name", "1 cpu short"]))
            .row(row(&["22", "", ""]))
            .row(row(&["3", "日本", "wide"]));
        let want = "\
ID  NAME         REASON
1   a long name  1 cpu short
22  -            -
3   日本         wide
";
        assert_eq!(table.render(), want);
    }

    #[test]
    fn empty_table_shows_its_header() {
        assert_eq!(Table::new(&["ID", "NAME"]).render(), "ID  NAME\n");
    }

    #[test]
    fn fields_are_aligned() {
        let text = fields(&[("ID", "1".into()), ("STATUS", String::new())]);
        assert_eq!(text, "ID      1\nSTATUS  -\n");
    }

    #[test]
    fn control_characters_are_replaced() {
        for (text, want) in [
            ("plain", "plain"),
            ("two\nlines\tand", "two lines and"),
            ("\x1b[31mred\x07", "\u{fffd}[31mred\u{fffd}"),
            ("\u{9b}2J", "\u{fffd}2J"),
        ] {
            assert_eq!(clean(text), want);
        }
        assert_eq!(clean_lines("a\nb\x1b"), "a\nb\u{fffd}");
    }
}
