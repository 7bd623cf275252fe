//! Parses a tutorial page: commands, their output, and files.

/// A block of the page.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    /// Commands and what they show.
    Console(Vec<Step>),
    /// A file to save.
    File {
        /// Its name.
        name: String,
        /// What is in it.
        text: String,
    },
}

/// A command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The line behind `$ `.
    pub command: String,
    /// Lines that are typed into it, those behind `# `.
    pub typed: Vec<String>,
    /// What is shown.
    pub shown: String,
}

/// The blocks of a page: those of `console`, and those of `diff` and `rust` with a name behind it.
///
/// # Panics
/// When a block of `console` begins with what no command shows.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            continue;
        };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if kind == "console" {
            blocks.push(Block::Console(steps(&inside)));
        } else if let Some(("diff" | "rust", name)) = kind.split_once(' ') {
            let text = inside.iter().map(|line| format!("{line}\n")).collect();
            blocks.push(Block::File {
                name: name.to_owned(),
                text,
            });
        }
    }
    blocks
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                ..Step::default()
            });
            continue;
        }
        let step = steps.last_mut();
        let step = step.unwrap_or_else(|| panic!("nothing was typed that shows {line}"));
        match line.strip_prefix("# ") {
            Some(typed) => step.typed.push(typed.to_owned()),
            None if step.shown.is_empty() => step.shown.push_str(line),
            None => {
                step.shown.push('\n');
                step.shown.push_str(line);
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_commands_and_files() {
        let page = "Do\n```console\n$ one\nshown\n...\n$ two\n# typed\n# exit\nbye\n```\n\
            ```text\n$ not this\n```\n```diff a.patch\n+new\n context\n```\n\
            ```rust\nnot_this();\n```\n```rust a.rs\nfn main() {}\n```\n";
        let step = |command: &str, typed: &[&str], shown: &str| Step {
            command: command.to_owned(),
            typed: typed.iter().map(|line| (*line).to_owned()).collect(),
            shown: shown.to_owned(),
        };
        assert_eq!(
            blocks(page),
            [
                Block::Console(vec![
                    step("one", &[], "shown\n..."),
                    step("two", &["typed", "exit"], "bye"),
                ]),
                Block::File {
                    name: "a.patch".to_owned(),
                    text: "+new\n context\n".to_owned(),
                },
                Block::File {
                    name: "a.rs".to_owned(),
                    text: "fn main() {}\n".to_owned(),
                },
            ]
        );
    }
}
