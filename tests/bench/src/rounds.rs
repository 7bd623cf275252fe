//! Measures two candidates alternately, so that other load on the machine affects both.

/// Why no other stack will do.
pub const LINUX: &str = "the comparison needs Linux on both sides";

/// How often, and how long each time.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// How often; the medians are reported.
    pub count: u32,
    /// Seconds of each run.
    pub seconds: u32,
}

/// The middle value; the mean of the middle two of an even number.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
