//! The board file with one parameter changed: results that depend on it must change.

use toml::Value;

/// Below this a figure cannot be changed by a fifth, and is changed by one.
const SMALL: i64 = 10;

/// A board file in which one figure is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// Its table and key: `timing.default.sram_lat`.
    pub key: String,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
    /// The file.
    pub board: String,
}

/// Every figure of the table `timing.default` of a board file, and the clocks, each a fifth
/// less and a fifth more, or one, or the other choices that there are. A text that is no
/// board file has none.
pub fn variations(board: &str) -> Vec<Variation> {
    let Ok(tables) = toml::from_str::<toml::Table>(board) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (path, keys) in [
        (&["clock"][..], Some(&["core_hz"][..])),
        (&["pci"], Some(&["mhz", "bits"])),
        (&["timing", "default"], None),
    ] {
        let header = path.join(".");
        let table = path.iter().try_fold(&tables, |table, name| {
            table.get(*name).and_then(Value::as_table)
        });
        for (key, value) in table.into_iter().flatten() {
            if keys.is_some_and(|keys| !keys.contains(&key.as_str())) {
                continue;
            }
            for to in others(key, value) {
                let changed = replaced(board, &header, key, &to);
                all.extend(changed.map(|(from, board)| Variation {
                    key: format!("{header}.{key}"),
                    from,
                    to,
                    board,
                }));
            }
        }
    }
    all
}

/// Other values of a figure.
fn others(key: &str, value: &Value) -> Vec<String> {
    match (key, value) {
        // What the bus knows.
        ("mhz", _) => vec!["33".to_owned()],
        ("bits", _) => vec!["32".to_owned()],
        ("arb", _) => ["\"round-robin\"", "\"cpu-first\""]
            .map(str::to_owned)
            .into(),
        // A frame's worth: one nanosecond more would be none.
        ("gen_ns", Value::Integer(0)) => vec!["1000".to_owned()],
        // No transaction ends within a beat.
        ("burst", Value::Integer(bytes)) => {
            let beats = |share: i64| bytes * share / 100 / 8 * 8;
            vec![beats(80).to_string(), beats(120).to_string()]
        }
        (_, Value::Boolean(flag)) => vec![(!flag).to_string()],
        (_, Value::Float(part)) => [0.8, 1.2]
            .map(|share| format!("{:.3}", part * share))
            .into(),
        (_, Value::Integer(figure)) if *figure < SMALL => {
            let less = (*figure > i64::from(key == "beat")).then(|| (figure - 1).to_string());
            less.into_iter().chain([(figure + 1).to_string()]).collect()
        }
        (_, Value::Integer(figure)) => [80, 120]
            .map(|share| (figure * share / 100).to_string())
            .into(),
        _ => Vec::new(),
    }
}

/// The text with another value of a key of a table, and the value that it was.
fn replaced(text: &str, table: &str, key: &str, value: &str) -> Option<(String, String)> {
    let start = text.find(&format!("[{table}]"))?;
    let line = text[start..].find(&format!("\n{key} = "))? + start + 1;
    let from = line + key.len() + 3;
    let rest = text[from..].lines().next()?;
    let old = rest.split('#').next().unwrap_or(rest).trim_end();
    let (before, after) = (&text[..from], &text[from + old.len()..]);
    Some((old.to_owned(), format!("{before}{value}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Parameters;
    use tigon2_model::Board;

    const BOARD: &str = include_str!("../../../boards/tigon2/tigon2.toml");

    #[test]
    fn every_figure_is_varied_to_a_board_that_is_valid_and_another_one() {
        let all = variations(BOARD);
        let keys: std::collections::BTreeSet<&str> =
            all.iter().map(|variation| variation.key.as_str()).collect();
        let table: toml::Table = toml::from_str(BOARD).expect("TOML");
        let figures = table["timing"]["default"].as_table().map_or(0, |t| t.len());
        assert_eq!(keys.len(), figures + 3);
        for variation in &all {
            let name = format!("{variation:?}");
            let same = Parameters::from_toml(&variation.board, "default").expect(&name)
                == Parameters::default();
            let board = Board::from_toml(&variation.board).expect(&name);
            assert!(!same || board != Board::default(), "{}", variation.key);
        }
        let burst = all.iter().filter(|v| v.key == "timing.default.burst");
        let values: Vec<&str> = burst.map(|v| v.to.as_str()).collect();
        assert_eq!(values, ["408", "608"]);
        assert_eq!(variations("no board"), []);
    }
}
