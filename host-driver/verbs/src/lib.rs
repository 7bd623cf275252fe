//! Options that some verbs of a command line accept and others reject.
//!
//! A global option in clap belongs to every verb: it appears in each help, and verbs that do not
//! use it accept it silently. [`spread`] distributes the options of a command instead: they may
//! precede or follow the verb, they appear in the help of the verbs that accept them, and all
//! other verbs reject them like any unknown option.
#![forbid(unsafe_code)]

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command};

/// A verb's use of an option of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It accepts it.
    Takes,
    /// It accepts it only to explain why it cannot be used, and hides it.
    Explains,
    /// It rejects it.
    Refuses,
}

/// Gives the verbs of a command those of its options that `use_of` selects by verb and option id.
pub fn spread(mut command: Command, use_of: impl Fn(&str, &str) -> Use) -> Command {
    let options: Vec<Arg> = command.get_arguments().cloned().collect();
    let verbs = command.get_subcommands();
    let verbs: Vec<String> = verbs.map(|verb| verb.get_name().to_owned()).collect();
    for name in verbs {
        command = command.mut_subcommand(&name, |verb| {
            // Depth does not matter below a verb with its own verbs.
            let deep = verb.has_subcommands();
            let own = options.iter().filter_map(|option| {
                let option = option.clone().global(deep);
                match use_of(&name, option.get_id().as_str()) {
                    Use::Takes => Some(option),
                    Use::Explains => Some(option.hide(true)),
                    Use::Refuses => None,
                }
            });
            verb.args(own.collect::<Vec<_>>())
        });
    }
    command
}

/// Moves the command's options that precede the verb behind it.
pub fn behind_the_verb(
    command: &Command,
    words: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut words = words.into_iter();
    let mut line: Vec<OsString> = words.next().into_iter().collect();
    let mut moved = Vec::new();
    while let Some(word) = words.next() {
        let Some(option) = word.to_str().and_then(|word| word.strip_prefix("--")) else {
            line.push(word);
            break;
        };
        let (name, value) = option.split_once('=').unzip();
        let name = name.unwrap_or(option);
        let known = command
            .get_arguments()
            .find(|known| known.get_long() == Some(name));
        match known {
            Some(known) => {
                let separate = value.is_none() && known.get_action().takes_values();
                moved.push(word);
                moved.extend(separate.then(|| words.next()).flatten());
            }
            // Help and version belong to the command.
            None => line.push(word),
        }
    }
    line.extend(moved);
    line.extend(words);
    line
}

/// The value of an option that a verb may not have.
pub fn value<T: Clone + Send + Sync + 'static>(verb: &ArgMatches, id: &str) -> Option<T> {
    verb.try_get_one::<T>(id).ok().flatten().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;
    use clap::error::ErrorKind;

    /// A tool with an option for `dig` and `pile`, one that `look` explains, and a flag.
    fn tool() -> Command {
        let depth = Arg::new("depth").long("depth");
        let loud = Arg::new("loud").long("loud").action(ArgAction::SetTrue);
        let pile = Command::new("pile").subcommand(Command::new("up"));
        let tool = Command::new("tool").args([depth, loud]).subcommands([
            Command::new("dig"),
            pile,
            Command::new("look"),
            Command::new("rest"),
        ]);
        spread(tool, |verb, option| match (verb, option) {
            ("dig" | "pile", _) | ("look", "loud") => Use::Takes,
            ("look", "depth") => Use::Explains,
            _ => Use::Refuses,
        })
    }

    fn run(line: &str) -> Result<ArgMatches, clap::Error> {
        let words = line.split_whitespace().map(OsString::from);
        let tool = tool();
        let words = behind_the_verb(&tool, words);
        tool.try_get_matches_from(words)
    }

    #[test]
    fn an_option_stands_in_front_of_the_verb_or_behind_it() {
        for line in [
            "tool --depth 3 dig",
            "tool dig --depth 3",
            "tool --loud --depth=3 dig",
            "tool --depth 3 pile up",
            "tool pile up --depth 3",
            "tool --depth 3 look",
        ] {
            let matches = run(line).expect(line);
            let (_, verb) = matches.subcommand().expect("a verb");
            assert_eq!(
                value::<String>(verb, "depth").as_deref(),
                Some("3"),
                "{line}"
            );
        }
        let matches = run("tool dig").expect("no option");
        let (_, verb) = matches.subcommand().expect("a verb");
        assert_eq!(value::<String>(verb, "depth"), None);
        assert_eq!(value::<bool>(verb, "loud"), Some(false));
    }

    #[test]
    fn a_verb_that_has_no_use_for_an_option_refuses_it_in_clap_s_words() {
        for line in [
            "tool --depth 3 rest",
            "tool rest --depth 3",
            "tool --loud rest",
        ] {
            let error = run(line).expect_err(line);
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{line}");
            let said = error.to_string();
            assert!(said.contains("unexpected argument '--"), "{said}");
            assert!(said.contains("Usage: tool rest"), "{said}");
        }
        assert_eq!(value::<String>(&ArgMatches::default(), "depth"), None);
    }

    #[test]
    fn help_shows_what_acts() {
        for (line, shown) in [
            ("tool dig --help", true),
            ("tool --help", true),
            ("tool --depth 3 dig --help", true),
            ("tool look --help", false),
            ("tool rest --help", false),
        ] {
            let help = run(line).expect_err("help").to_string();
            assert_eq!(help.contains("--depth"), shown, "{line}: {help}");
        }
    }

    #[test]
    fn what_is_wrong_in_front_of_the_verb_is_said() {
        let kind = |line| run(line).map_err(|error| error.kind()).err();
        assert_eq!(kind("tool --depth"), Some(ErrorKind::InvalidValue));
        assert_eq!(kind("tool --deep 3 dig"), Some(ErrorKind::UnknownArgument));
        assert_eq!(
            kind("tool --depth 3 swim"),
            Some(ErrorKind::InvalidSubcommand)
        );
    }
}
