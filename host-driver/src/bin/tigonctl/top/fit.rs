//! Names in columns.

/// A name in this many columns, visibly truncated if it is longer.
pub(super) fn fitted(name: &str, columns: usize) -> String {
    if name.chars().count() <= columns {
        return name.to_owned();
    }
    let kept = name.chars().take(columns.saturating_sub(1));
    kept.chain(['…']).collect()
}
