//! Filters of log messages: a level for all modules, and levels for some.

use host_interface::log::{Level, MODULE_NAMES, module_named};
use thiserror::Error;

/// An invalid filter.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum WrongFilter {
    /// There is no such level.
    #[error("{0} is no level; the levels are off, error, warn, info, debug and trace")]
    Level(String),
    /// There is no such module.
    #[error("the firmware has no module {name}: there are {}", MODULE_NAMES.join(", "))]
    Module {
        /// What was asked for.
        name: String,
    },
    /// It is not `MODULE=LEVEL`.
    #[error("{0} is not MODULE=LEVEL, such as link=debug")]
    Form(String),
}

/// The level with a name.
///
/// # Errors
/// [`WrongFilter::Level`]
pub fn level_named(name: &str) -> Result<Level, WrongFilter> {
    let same = |level: &&Level| level.name().eq_ignore_ascii_case(name);
    let level = Level::ALL.iter().find(same).copied();
    level.ok_or_else(|| WrongFilter::Level(name.to_owned()))
}

/// The requested level of each module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelFilter(Vec<(usize, Level)>);

impl LevelFilter {
    /// `level` for all modules, then the levels of `modules`, each as `MODULE=LEVEL`.
    ///
    /// # Errors
    /// [`WrongFilter`]
    pub fn new(level: Option<Level>, modules: &[String]) -> Result<Self, WrongFilter> {
        let mut filter = LevelFilter::default();
        if let Some(level) = level {
            let all = 0..MODULE_NAMES.len();
            filter.0 = all.map(|module| (module, level)).collect();
        }
        for words in modules {
            let (name, level) = words
                .split_once('=')
                .ok_or_else(|| WrongFilter::Form(words.clone()))?;
            let level = level_named(level)?;
            let module = module_named(name).ok_or_else(|| WrongFilter::Module {
                name: name.to_owned(),
            })?;
            filter.0.retain(|(other, _)| *other != module);
            filter.0.push((module, level));
        }
        Ok(filter)
    }

    /// Module and level of each request.
    pub fn levels(&self) -> &[(usize, Level)] {
        &self.0
    }

    /// Whether a message is shown. Messages of unknown modules are.
    pub fn shows(&self, module: Option<usize>, level: Level) -> bool {
        let asked = |(of, _): &&(usize, Level)| Some(*of) == module;
        let most = self.0.iter().find(asked);
        most.is_none_or(|(_, most)| level <= *most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_module_may_have_another_level_than_all() {
        let words = modules(&["link=trace", "send=off"]);
        let filter = LevelFilter::new(Some(Level::Warn), &words).expect("good words");
        let shows = |name, level| filter.shows(module_named(name), level);
        assert!(shows("link", Level::Trace) && shows("boot", Level::Warn));
        assert!(!shows("send", Level::Error) && !shows("boot", Level::Info));
        assert!(filter.shows(None, Level::Trace));
        let empty = LevelFilter::new(None, &[]).expect("nothing wrong");
        assert!(empty.shows(module_named("link"), Level::Trace));
        assert_eq!(empty.levels(), []);
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (words, part) in [
            ("link", "MODULE=LEVEL"),
            ("link=loud", "loud is no level"),
            ("cable=info", "no module cable: there are start, boot"),
        ] {
            let error = LevelFilter::new(None, &modules(&[words])).expect_err(words);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
