//! The shell behind the card: the user's own shell, with `tigonctl` in its path and completions.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testbed::net::namespace::Namespace;
use testbed::process;

/// How long `tigonctl` may take to print its completions.
const LIMIT: Duration = Duration::from_secs(20);

/// A shell that can be started behind a card.
#[derive(Clone, Debug)]
pub struct Shell {
    program: PathBuf,
    /// The file that it reads first, if it is one that can be told to.
    startup: Option<PathBuf>,
    /// The search path with `tigonctl` in front.
    path: OsString,
}

impl Shell {
    /// The user's shell. Bash gets a startup file in `folder`, which reads the user's own and
    /// then has `tigonctl` completed.
    ///
    /// # Errors
    /// If `tigonctl` does not print its completions, or the folder is full.
    pub fn prepare(tigonctl: &Path, folder: &Path) -> Result<Shell> {
        let program = program(std::env::var_os("SHELL"));
        let startup = if is_bash(&program) {
            Some(write_startup(tigonctl, folder)?)
        } else {
            None
        };
        Ok(Shell {
            program,
            startup,
            path: with_folder_of(tigonctl)?,
        })
    }

    /// Its name, as a command.
    pub fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// Whether Tab completes `tigonctl` in it.
    pub fn completes(&self) -> bool {
        self.startup.is_some()
    }

    /// The command that starts it in a namespace.
    pub fn command(&self, namespace: &Namespace) -> Command {
        let mut command = namespace.command(&self.name());
        if let Some(startup) = &self.startup {
            command.arg("--rcfile").arg(startup);
        }
        command.env("PATH", &self.path);
        command
    }
}

/// The user's choice; where there is none Bash, which can complete, before the plain shell.
fn program(choice: Option<OsString>) -> PathBuf {
    match choice.filter(|choice| !choice.is_empty()) {
        Some(choice) => choice.into(),
        None if process::exists("bash") => "bash".into(),
        None => "sh".into(),
    }
}

fn is_bash(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "bash")
}

/// Writes the completions, and the file that sources them.
fn write_startup(tigonctl: &Path, folder: &Path) -> Result<PathBuf> {
    let words = ["completions", "bash"];
    let completions = process::output(Command::new(tigonctl).args(words), LIMIT)?;
    let script = folder.join("completions.bash");
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write(&script, &completions)?;
    // The user's own may set the search path anew.
    let text = format!(
        "[ -r ~/.bashrc ] && . ~/.bashrc\nPATH={}:$PATH\n. {}\n",
        quoted(tigonctl.parent().unwrap_or(Path::new("."))),
        quoted(&script)
    );
    let startup = folder.join("bashrc");
    write(&startup, &text)?;
    Ok(startup)
}

/// A path as one word of a shell's.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The search path with the folder of a program in front.
fn with_folder_of(program: &Path) -> Result<OsString> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folder = program.parent().map(Path::to_path_buf);
    let folders = folder.into_iter().chain(std::env::split_paths(&folders));
    std::env::join_paths(folders).context("the search path")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A `tigonctl` that completes one word, in a folder with a quote in its name.
    fn completed(folder: &Path) -> PathBuf {
        let folder = folder.join("it's here");
        std::fs::create_dir(&folder).expect("room");
        let program = folder.join("tigonctl");
        let script = "#!/bin/sh\necho \"complete -W '$1 stats' tigonctl\"\n";
        std::fs::write(&program, script).expect("room");
        let mode = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("it is ours");
        program
    }

    /// What Bash itself makes of the file.
    #[test]
    fn bash_finds_and_completes_the_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let tigonctl = completed(folder.path());
        let startup = write_startup(&tigonctl, folder.path()).expect("a file");
        let ask = format!(
            ". {}; complete -p tigonctl; command -v tigonctl",
            quoted(&startup)
        );
        let mut bash = Command::new("bash");
        let said = process::output(bash.args(["-c", &ask]).env("HOME", "/nonexistent"), LIMIT);
        let said = said.expect("bash is here");
        assert_eq!(
            said,
            format!(
                "complete -W 'completions stats' tigonctl\n{}\n",
                tigonctl.display()
            )
        );
    }

    #[test]
    fn the_users_choice_is_his() {
        assert_eq!(program(Some("/bin/zsh".into())), Path::new("/bin/zsh"));
        assert!(is_bash(Path::new("/usr/local/bin/bash")));
        assert!(!is_bash(Path::new("/bin/dash")));
        let none = program(Some(OsString::new()));
        assert!(none == Path::new("bash") || none == Path::new("sh"));
    }
}
