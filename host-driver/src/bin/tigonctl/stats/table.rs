//! The table of counts for people: one name a line, in groups and columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};

/// The groups in their order: the key in the driver's answer, and the heading. Unlisted groups
/// follow these, with their keys as headings.
const GROUPS: [(&str, &str); 12] = [
    ("driver", "driver"),
    ("driver_drops", "dropped by the driver"),
    ("firmware_drops", "dropped by the firmware"),
    ("handlers", "handler runs"),
    (CUSTOM, "custom counters"),
    (EVENTS, "events"),
    ("card", "statistics block"),
    ("block", "statistics block, every word"),
    ("mac", "MAC"),
    ("emulator", "emulator"),
    ("engine", "packet processing engine"),
    ("stack", "TCP/IP"),
];
/// The group of custom counters: the user asked for them, so zeros are shown.
const CUSTOM: &str = "custom_counters";
/// The group of counts that have no group in the driver's answer.
const EVENTS: &str = "events";
/// Before each name.
const INDENT: &str = "     ";

/// A group: its heading and its counts, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    title: String,
    counts: BTreeMap<String, u64>,
}

/// The counts at one moment, in groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<(String, Group)>);

/// The previous counts, and the seconds since then.
#[derive(Clone, Copy, Debug)]
pub struct Since<'a> {
    /// The previous counts.
    pub counts: &'a Counts,
    /// How long ago they were read.
    pub time: Duration,
}

/// A name in the common style: lower case, parts joined by `_`.
pub fn styled(name: &str) -> String {
    if !name.contains(|letter: char| letter.is_ascii_uppercase()) {
        return name.to_owned();
    }
    let mut styled = String::new();
    let mut last = '_';
    for letter in name.chars() {
        let begins = letter.is_ascii_uppercase() && !last.is_ascii_uppercase()
            || letter.is_ascii_digit() && !last.is_ascii_digit();
        if begins && last != '_' {
            styled.push('_');
        }
        styled.push(letter.to_ascii_lowercase());
        last = letter;
    }
    styled
}

/// A driver's answer with all names in the common style.
pub fn in_one_style(answer: Value) -> Value {
    let Value::Object(fields) = answer else {
        return answer;
    };
    let group = |value: Value| match value {
        Value::Object(counts) => {
            let counts = counts.into_iter();
            Value::Object(counts.map(|(name, count)| (styled(&name), count)).collect())
        }
        other => other,
    };
    let fields = fields.into_iter();
    Value::Object(fields.map(|(name, value)| (name, group(value))).collect())
}

impl Counts {
    /// The counts in a driver's answer, with zeros if requested.
    pub fn read(answer: &Value, zeros: bool) -> Self {
        let mut groups: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for (key, value) in answer.as_object().into_iter().flatten() {
            if let Some(counts) = value.as_object() {
                let shown = |count: u64| count > 0 || zeros || key == CUSTOM;
                let counts = counts
                    .iter()
                    .filter_map(|(name, count)| Some((styled(name), count.as_u64()?)))
                    .filter(|(_, count)| shown(*count));
                groups.entry(key).or_default().extend(counts);
            } else if let Some(count) = value.as_u64().filter(|count| *count > 0 || zeros) {
                let group = groups.entry(EVENTS).or_default();
                group.insert(styled(key), count);
            }
        }
        let known = GROUPS.map(|(key, title)| (key, title.to_owned()));
        let others = groups
            .keys()
            .filter(|key| GROUPS.iter().all(|(known, _)| known != *key))
            .map(|key| (*key, key.replace('_', " ")));
        let order: Vec<(&str, String)> = known.into_iter().chain(others).collect();
        let shown = order.into_iter().filter_map(|(key, title)| {
            let counts = groups.remove(key).filter(|counts| !counts.is_empty())?;
            Some((key.to_owned(), Group { title, counts }))
        });
        Self(shown.collect())
    }

    fn get(&self, key: &str, name: &str) -> u64 {
        let group = self.0.iter().find(|(known, _)| known == key);
        let count = group.and_then(|(_, group)| group.counts.get(name));
        count.copied().unwrap_or(0)
    }

    /// The change of each count since then. A card that was reset counts from zero again.
    fn delta(&self, key: &str, name: &str, since: &Counts) -> u64 {
        let (now, then) = (self.get(key, name), since.get(key, name));
        if now < then { now } else { now - then }
    }

    /// A line for each count; with previous counts, also the change and the rate per second.
    pub fn table(&self, since: Option<Since<'_>>) -> String {
        let counts = || self.0.iter().flat_map(|(_, group)| group.counts.iter());
        let names = counts().map(|(name, _)| name.len() + 1).max().unwrap_or(0);
        let numbers = counts().map(|(_, count)| count.to_string().len());
        let numbers = numbers.max().unwrap_or(0).max(5);
        let mut text = String::new();
        for (key, group) in &self.0 {
            // A string has room, here and below.
            let _ = write!(text, "{}:", group.title);
            if since.is_some() {
                let heading = INDENT.len() + names + 1 + numbers;
                let fill = heading.saturating_sub(group.title.len() + 1);
                let _ = write!(
                    text,
                    "{:>fill$} {:>10} {:>12}",
                    "count", "since", "a second"
                );
            }
            text.push('\n');
            for (name, count) in &group.counts {
                let name_and_colon = format!("{name}:");
                let _ = write!(text, "{INDENT}{name_and_colon:<names$} {count:>numbers$}");
                if let Some(since) = since {
                    let delta = self.delta(key, name, since.counts);
                    let rate = per_second(delta, since.time);
                    let delta = format!("+{delta}");
                    let _ = write!(text, " {delta:>10} {rate:>12.1}");
                }
                text.push('\n');
            }
        }
        text
    }

    /// The changes since then and the rates per second, for programs: groups and names as in the
    /// driver's answer.
    pub fn changes(&self, since: Since<'_>) -> Map<String, Value> {
        let mut deltas = Map::new();
        let mut rates = Map::new();
        for (key, group) in &self.0 {
            let delta = |name: &String| self.delta(key, name, since.counts);
            let all = |value: &dyn Fn(u64) -> Value| -> Value {
                let names = group.counts.keys();
                names
                    .map(|name| (name.clone(), value(delta(name))))
                    .collect()
            };
            deltas.insert(key.clone(), all(&Value::from));
            rates.insert(
                key.clone(),
                all(&|count| per_second(count, since.time).into()),
            );
        }
        let mut changes = Map::new();
        changes.insert("seconds".to_owned(), since.time.as_secs_f64().into());
        changes.insert("deltas".to_owned(), deltas.into());
        changes.insert("rates".to_owned(), rates.into());
        changes
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(frames: u64) -> Value {
        json!({
            "link": "Gigabit",
            "firmware_version": "0.1.0",
            "handlers": { "ReceiveComplete": frames, "Led": 0 },
            "driver": { "frames_received": frames, "bytes_received": 100 * frames },
            "custom_counters": { "pings": 0 },
            "queue_of_the_day": { "Refused": 3 },
            "link_changes": 1,
            "firmware_errors": 0,
        })
    }

    #[test]
    fn names_have_one_style() {
        for (name, shown) in [
            ("NoReceiveBd", "no_receive_bd"),
            ("Collisions15", "collisions_15"),
            ("DoorbellA", "doorbell_a"),
            ("frames_sent", "frames_sent"),
            ("description[3]", "description[3]"),
            ("MIITransfers", "miitransfers"),
        ] {
            assert_eq!(styled(name), shown);
        }
        let styled = in_one_style(answer(5));
        assert_eq!(styled["handlers"]["receive_complete"], 5);
        assert_eq!(styled["link"], "Gigabit");
    }

    /// A newcomer finds a count by its name alone, at the beginning of a line.
    #[test]
    fn each_count_has_a_line_of_its_group() {
        let table = Counts::read(&answer(12), false).table(None);
        let expected = "\
driver:
     bytes_received:    1200
     frames_received:     12
handler runs:
     receive_complete:    12
custom counters:
     pings:                0
events:
     link_changes:         1
queue of the day:
     refused:              3
";
        assert_eq!(table, expected);
        let zeros = Counts::read(&answer(12), true).table(None);
        assert!(zeros.contains("     led:                  0\n"), "{zeros}");
    }

    #[test]
    fn a_second_look_tells_what_came_since() {
        let (then, now) = (answer(10), answer(40));
        let [then, now] = [then, now].map(|answer| Counts::read(&answer, false));
        let since = Since {
            counts: &then,
            time: Duration::from_millis(2000),
        };
        let table = now.table(Some(since));
        let row = |name: &str| -> Vec<String> {
            let line = table.lines().find(|line| line.trim().starts_with(name));
            let line = line.unwrap_or_else(|| panic!("{name}: {table}"));
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(
            row("frames_received:"),
            ["frames_received:", "40", "+30", "15.0"]
        );
        assert_eq!(row("refused:"), ["refused:", "3", "+0", "0.0"]);
        // Numbers stand below each other.
        let ends: Vec<usize> = table.lines().map(str::len).collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{table}");
        let changes = now.changes(since);
        assert_eq!(changes["deltas"]["handlers"]["receive_complete"], 30);
        assert_eq!(changes["rates"]["driver"]["bytes_received"], 1500.0);
        assert_eq!(changes["seconds"], 2.0);
    }

    /// After a reset the card counts anew: what it has is what came since.
    #[test]
    fn a_card_that_was_reset_gives_no_nonsense() {
        let [then, now] = [answer(100), answer(7)].map(|answer| Counts::read(&answer, false));
        let time = Duration::from_secs(1);
        let since = Since {
            counts: &then,
            time,
        };
        assert_eq!(now.changes(since)["deltas"]["driver"]["frames_received"], 7);
    }
}
