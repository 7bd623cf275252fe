//! Places the names of lines: each as close to its line's end as its neighbours allow.

/// The places of names that want to stand at `wanted`, in rising order, `gap` apart at least
/// and between two ends. Names that are in each other's way share the distance.
pub fn spread(wanted: &[f64], gap: f64, from: f64, to: f64) -> Vec<f64> {
    // Without their gaps the places only have to rise: neighbours that do not are one block,
    // which stands where its members want to be on average.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (n, place) in wanted.iter().enumerate() {
        let mut block = (place - n as f64 * gap, 1);
        while let Some((place, members)) = blocks.pop_if(|before| before.0 > block.0) {
            let all = members + block.1;
            let sum = place * members as f64 + block.0 * block.1 as f64;
            block = (sum / all as f64, all);
        }
        blocks.push(block);
    }
    let room = (to - wanted.len().saturating_sub(1) as f64 * gap).max(from);
    let places = blocks
        .into_iter()
        .flat_map(|(place, members)| std::iter::repeat_n(place.clamp(from, room), members));
    let places = places.enumerate();
    places.map(|(n, place)| place + n as f64 * gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_lines_where_there_is_room() {
        assert_eq!(spread(&[10.0, 50.0], 18.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[], 18.0, 0.0, 100.0), [0.0; 0]);
    }

    #[test]
    fn names_of_lines_that_end_together_stand_round_that_end() {
        assert_eq!(
            spread(&[50.0, 50.0, 50.0], 18.0, 0.0, 100.0),
            [32.0, 50.0, 68.0]
        );
        assert_eq!(
            spread(&[40.0, 44.0, 90.0], 18.0, 0.0, 100.0),
            [33.0, 51.0, 90.0]
        );
    }

    #[test]
    fn no_name_stands_beyond_the_ends() {
        assert_eq!(spread(&[2.0, 2.0], 18.0, 0.0, 100.0), [0.0, 18.0]);
        assert_eq!(spread(&[99.0, 100.0], 18.0, 0.0, 100.0), [82.0, 100.0]);
    }
}
