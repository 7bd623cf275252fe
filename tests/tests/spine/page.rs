//! The figures of docs/spine.md.

use testbed::paths;

/// The cells of the row of a table that begins with these words, but for empty ones.
///
/// # Panics
/// If the page has no such row.
pub fn cells(row: &str) -> Vec<String> {
    let page = std::fs::read_to_string(paths::root().join("docs/spine.md")).expect("the page");
    let start = format!("| {row} |");
    let rest = page.lines().find_map(|line| line.strip_prefix(&start));
    let rest = rest.unwrap_or_else(|| panic!("no row {row}"));
    let cells = rest.split('|').map(str::trim);
    let cells = cells.filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

/// The figures in them; `us` and `/s` behind them do not count.
///
/// # Panics
/// If the page has no such row, or a cell is no figure.
pub fn figures(row: &str) -> Vec<f64> {
    let number = |cell: &str| {
        let number = cell.trim_end_matches("us").trim_end_matches("/s");
        let number = number.replace(' ', "").parse();
        number.unwrap_or_else(|_| panic!("{row}: {cell}"))
    };
    cells(row).iter().map(|cell| number(cell)).collect()
}

/// The last of them: what was measured.
///
/// # Panics
/// If there is none.
pub fn measured(row: &str) -> f64 {
    *figures(row)
        .last()
        .unwrap_or_else(|| panic!("no figure: {row}"))
}
