//! The readable output of a bench: lines on the terminal, and Markdown beside the JSON.

use crate::report::write_json;
use anyhow::{Context, Result};
use comfy_table::{Row, Table};
use serde::Serialize;
use testbed::conditions::Conditions;

/// A page that is printed line by line and written at its end.
#[derive(Debug)]
pub struct Page {
    conditions: Conditions,
    markdown: String,
}

/// A row of figures with what it was measured under.
#[derive(Debug, Serialize)]
struct Under<'a, T> {
    #[serde(flatten)]
    conditions: Conditions,
    #[serde(flatten)]
    figures: &'a T,
}

impl Page {
    /// A page that begins with what all on it was measured under.
    pub fn new(conditions: Conditions) -> Page {
        println!("\n{conditions}");
        Page {
            conditions,
            markdown: format!("{conditions}\n\n"),
        }
    }

    /// What stands above a group of tables.
    pub fn title(&mut self, words: &str) {
        println!("\n{words}");
        self.markdown += &format!("## {words}\n\n");
    }

    /// A table with what it shows.
    pub fn table(&mut self, words: &str, table: &Table) {
        println!("\n{words}\n{table}");
        self.markdown += &format!("**{words}**\n\n{}\n", markdown(table));
    }

    /// Sentences below a table.
    pub fn sentences(&mut self, sentences: &[String]) {
        for sentence in sentences {
            println!("{sentence}");
            self.markdown += &format!("* {sentence}\n");
        }
        if !sentences.is_empty() {
            self.markdown.push('\n');
        }
    }

    /// Writes `<name>.md` and the rows of figures, each with the conditions, as `<name>.json`
    /// to `target/reports`, and says where they are.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(&self, name: &str, rows: &[impl Serialize]) -> Result<()> {
        let conditions = self.conditions;
        let rows = rows.iter().map(|figures| Under {
            conditions,
            figures,
        });
        let json = write_json(name, &rows.collect::<Vec<_>>())?;
        let tables = json.with_extension("md");
        std::fs::write(&tables, &self.markdown)
            .with_context(|| format!("cannot write {}", tables.display()))?;
        println!("report: {}, tables in {name}.md beside it", json.display());
        Ok(())
    }
}

/// A table as Markdown has it: a row is a line.
fn markdown(table: &Table) -> String {
    let line = |row: &Row| {
        let cells = row
            .cell_iter()
            .map(|cell| cell.content().replace('\n', ", ").replace('|', "\\|"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let header = table.header().map(|header| {
        let rule = " --- |".repeat(header.cell_count());
        format!("{}|{rule}\n", line(header))
    });
    let rows = table.row_iter().map(line).collect::<String>();
    header.unwrap_or_default() + &rows
}

#[cfg(test)]
mod tests {
    use super::super::tables::framed;
    use super::*;

    /// A cell of several lines stays in its row, and nothing in it ends the cell.
    #[test]
    fn a_row_is_a_line_of_markdown() {
        let mut table = framed(&["bytes", "paper"]);
        table.add_row(["18", "RELEASE 16 (1.9)\nBSD 16 (1.9)"]);
        table.add_row(["400", "a|b"]);
        let expected = "| bytes | paper |\n| --- | --- |\n\
                        | 18 | RELEASE 16 (1.9), BSD 16 (1.9) |\n| 400 | a\\|b |\n";
        assert_eq!(markdown(&table), expected);
    }
}
