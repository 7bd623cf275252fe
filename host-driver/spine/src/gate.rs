//! The source gate: what the sources of an extension may not contain.
//!
//! The compiler forbids `unsafe`. But safe Rust has known holes (rust-lang/rust#25860 and its
//! relatives) by which references can be forged, and all of them need parts of the language that
//! handlers do not: types of function pointers, `for<'a>`, `dyn`, traits with lifetimes,
//! projections in the heads of implementations. So these are refused, by a walk over the syntax,
//! before anything is compiled. Macros could hide them: an extension defines none, calls those of a
//! list, and has in their arguments what it may have elsewhere. Attributes are those of a list, too.
//! No import gives a name of the lists to something else.
//!
//! This wall stands on a list of holes that are known. It is not the only one.

mod arguments;
mod interfaces;
mod texts;
mod walk;

pub use interfaces::Interfaces;
pub use texts::Texts;

use self::walk::Walk;
use spine_text::{TEXTS_MOST, TextError};
use std::path::{Path, PathBuf};
use syn::visit::Visit;
use thiserror::Error;

/// Why sources are refused.
#[derive(Debug, Error)]
pub enum GateError {
    /// A file cannot be read.
    #[error("{}: {error}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A file is not Rust.
    #[error("{}: {error}", .path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What the parser says.
        error: syn::Error,
    },
    /// It has something that extensions do not have.
    #[error("{}:{line}: {what}", .path.display())]
    Refused {
        /// Which file.
        path: PathBuf,
        /// Line.
        line: usize,
        /// What.
        what: Refusal,
    },
}

/// What extensions do not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// `unsafe` in any place.
    #[error("unsafe")]
    Unsafe,
    /// `fn(..) -> ..` as a type.
    #[error("a type of function pointers")]
    FunctionPointer,
    /// `for<'a>`.
    #[error("a bound for all lifetimes")]
    HigherRanked,
    /// `dyn Trait`.
    #[error("a trait object")]
    TraitObject,
    /// A trait with a lifetime.
    #[error("a trait with lifetime parameters")]
    TraitLifetime,
    /// `impl<T> .. for <T as ..>::..`.
    #[error("a projection in the head of an implementation")]
    Projection,
    /// Functions or data from elsewhere.
    #[error("an extern block or crate")]
    Extern,
    /// `static mut`.
    #[error("a static that is mutable")]
    MutableStatic,
    /// `async`.
    #[error("async code")]
    Async,
    /// A macro of its own.
    #[error("a macro definition")]
    MacroDefinition,
    /// A macro that is not on the list.
    #[error("the macro {0}!")]
    Macro(String),
    /// `spine::import!(..)` of what can be no procedure's name.
    #[error("{0:?}, which is not an extension's name, a dot and a procedure's")]
    InterfaceName(String),
    /// A `log!` of another form than its own.
    #[error("a log! that is not log!(context, \"text\", words..)")]
    NoLine,
    /// The text of a `log!` is none.
    #[error("the text of a log!: {0}")]
    Text(TextError),
    /// A `log!` with too few words for its text, or too many.
    #[error("a log! with {words} words for {holes} holes")]
    Words {
        /// Holes of the text.
        holes: usize,
        /// Words behind it.
        words: usize,
    },
    /// Two texts with one number: the driver could not tell them apart.
    #[error("the texts {0:?} and {1:?} of a log!, which have the same number: change one of them")]
    TextNumber(String, String),
    /// More texts than a container has.
    #[error("more than {TEXTS_MOST} texts of log!")]
    TooManyTexts,
    /// `use .. as assert`, or another name of the lists.
    #[error("the name {0} for something else")]
    Renamed(String),
    /// A word in the arguments of a macro.
    #[error("`{0}` in the arguments of a macro")]
    Hidden(String),
    /// Syntax that the parser does not understand, so nobody here does.
    #[error("syntax that is not known")]
    Unknown,
    /// An attribute that is not on the list.
    #[error("the attribute {0}")]
    Attribute(String),
    /// A derive that is not on the list.
    #[error("a derived {0}")]
    Derive(String),
}

/// What was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// How many files.
    pub files: usize,
    /// What they export and import.
    pub interfaces: Interfaces,
    /// The texts of their log.
    pub texts: Texts,
}

/// Judges the text of a file.
///
/// # Errors
/// [`GateError`]; `path` is for the message.
pub fn judge(path: &Path, text: &str) -> Result<Judged, GateError> {
    judge_behind(Judged::default(), path, text)
}

/// Judges the text of a file of the same crate as what was judged before it.
fn judge_behind(before: Judged, path: &Path, text: &str) -> Result<Judged, GateError> {
    let file = syn::parse_file(text).map_err(|error| GateError::Syntax {
        path: path.to_owned(),
        error,
    })?;
    let mut walk = Walk {
        found: None,
        judged: before,
    };
    walk.visit_file(&file);
    match walk.found {
        None => Ok(Judged {
            files: walk.judged.files + 1,
            ..walk.judged
        }),
        Some((line, what)) => Err(GateError::Refused {
            path: path.to_owned(),
            line,
            what,
        }),
    }
}

/// Judges all Rust files below a folder.
///
/// # Errors
/// [`GateError`] of the first one.
pub fn judge_folder(folder: &Path) -> Result<Judged, GateError> {
    judge_folder_behind(Judged::default(), folder)
}

fn judge_folder_behind(mut judged: Judged, folder: &Path) -> Result<Judged, GateError> {
    let read = |path: &Path, error| GateError::Read {
        path: path.to_owned(),
        error,
    };
    for path in sorted_entries(folder).map_err(|error| read(folder, error))? {
        // A link would lead out of the crate.
        let kind = std::fs::symlink_metadata(&path).map_err(|error| read(&path, error))?;
        if kind.is_dir() {
            judged = judge_folder_behind(judged, &path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && kind.is_file() {
            let text = std::fs::read_to_string(&path).map_err(|error| read(&path, error))?;
            judged = judge_behind(judged, &path, &text)?;
        } else {
            let error = std::io::Error::other("not a Rust file of the crate");
            return Err(read(&path, error));
        }
    }
    Ok(judged)
}

/// What lies in a folder, in the order of the names.
pub(crate) fn sorted_entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
