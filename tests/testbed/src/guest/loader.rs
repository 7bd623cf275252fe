//! Finds programs in the unpacked packages and their libraries, and runs them on this machine.

use anyhow::{Context, Result, bail};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian's packages have programs.
const PROGRAMS: &[&str] = &["usr/sbin", "usr/bin", "sbin", "bin"];
/// Where they have shared libraries.
const LIBRARIES: &[&str] = &["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
/// The program that loads the others, as their headers name it.
const INTERPRETER: &str = "/lib64/ld-linux-x86-64.so.2";

/// A folder with unpacked packages.
#[derive(Debug)]
pub struct Loader {
    tree: PathBuf,
}

impl Loader {
    /// The folder with the packages' files.
    pub fn new(tree: &Path) -> Loader {
        Loader {
            tree: tree.to_owned(),
        }
    }

    /// A program's file.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        self.find(PROGRAMS, name)
            .with_context(|| format!("no program {name} in the packages"))
    }

    /// A library's file.
    pub fn library(&self, name: &str) -> Result<PathBuf> {
        // The loader itself is needed by name as well.
        self.find(LIBRARIES, name)
            .with_context(|| format!("no library {name} in the packages"))
    }

    /// The file of the program that loads the others, and where it belongs.
    pub fn interpreter(&self) -> Result<(&'static str, PathBuf)> {
        let name = INTERPRETER.rsplit('/').next().unwrap_or(INTERPRETER);
        let file = self.library(name).or_else(|_| {
            self.find(&["lib64", "usr/lib64"], name)
                .context("the packages have no program loader")
        })?;
        Ok((INTERPRETER.trim_start_matches('/'), file))
    }

    /// A command that runs a program of the packages on this machine, with the
    /// packages' libraries and not with this machine's.
    pub fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(self.interpreter()?.1);
        let folders: Vec<_> = LIBRARIES
            .iter()
            .map(|folder| self.tree.join(folder).display().to_string())
            .collect();
        let file = self.program(program)?;
        command.args(["--library-path", &folders.join(":"), "--argv0", program]);
        command.arg(file);
        Ok(command)
    }

    /// Every shared library that `programs` need, and that those need, by name.
    pub fn needs(&self, programs: &[PathBuf]) -> Result<BTreeMap<String, PathBuf>> {
        let mut found = BTreeMap::new();
        let mut open: Vec<PathBuf> = programs.to_vec();
        while let Some(file) = open.pop() {
            let bytes = fs::read(&file)?;
            let names =
                needed(&bytes).with_context(|| format!("{} is no program", file.display()))?;
            for name in names {
                if INTERPRETER.ends_with(&name) || found.contains_key(&name) {
                    continue;
                }
                let library = self.library(&name)?;
                open.push(library.clone());
                found.insert(name, library);
            }
        }
        Ok(found)
    }

    /// A file of this name in one of `folders`. Links lead to other places of
    /// the tree, whose own root they take for the root.
    fn find(&self, folders: &[&str], name: &str) -> Option<PathBuf> {
        let candidates = folders
            .iter()
            .map(|folder| self.tree.join(folder).join(name));
        candidates.filter_map(|path| self.follow(path)).next()
    }

    fn follow(&self, mut path: PathBuf) -> Option<PathBuf> {
        for _ in 0..8 {
            let data = fs::symlink_metadata(&path).ok()?;
            if !data.is_symlink() {
                return data.is_file().then_some(path);
            }
            let target = fs::read_link(&path).ok()?;
            path = match target.strip_prefix("/") {
                Ok(inside) => self.tree.join(inside),
                Err(_) => path.parent()?.join(target),
            };
        }
        None
    }
}

/// The names in an ELF file's list of needed libraries; none for a static one.
fn needed(bytes: &[u8]) -> Result<Vec<String>> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let (endian, header) = (file.endian(), file.elf_header());
    let sections = header.sections(endian, bytes)?;
    let mut names = Vec::new();
    for segment in header.program_headers(endian, bytes)? {
        if segment.p_type(endian) != elf::PT_DYNAMIC {
            continue;
        }
        let Some((entries, strings)) = sections.dynamic(endian, bytes)? else {
            bail!("a dynamic segment without its section");
        };
        let strings = sections.strings(endian, bytes, strings)?;
        for entry in entries {
            if entry.d_tag.get(endian) == elf::DT_NEEDED {
                let at = u32::try_from(entry.d_val.get(endian))?;
                let name = strings
                    .get(at)
                    .map_err(|()| anyhow::anyhow!("a name outside of its table"))?;
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_needs_the_c_library() {
        let own = fs::read(std::env::current_exe().expect("a program")).expect("a file");
        let names = needed(&own).expect("an ELF file");
        assert!(
            names.iter().any(|name| name.starts_with("libc.so")),
            "{names:?}"
        );
        assert!(needed(b"#!/bin/sh").is_err());
    }

    #[test]
    fn links_stay_inside_of_the_tree() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let tree = folder.path();
        fs::create_dir_all(tree.join("bin")).expect("a folder");
        fs::create_dir_all(tree.join("sbin")).expect("a folder");
        fs::write(tree.join("bin/kmod"), "").expect("a file");
        symlink("/bin/kmod", tree.join("sbin/depmod")).expect("a link");
        symlink("loop", tree.join("bin/loop")).expect("a link");
        let loader = Loader::new(tree);
        assert_eq!(loader.program("depmod").expect("it"), tree.join("bin/kmod"));
        assert!(loader.program("loop").is_err());
        assert!(loader.program("modinfo").is_err());
    }
}
