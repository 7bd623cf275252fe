//! The source gate: what the sources of an extension may not contain.
//!
//! The compiler forbids `unsafe`. But safe Rust has known holes (rust-lang/rust#25860 and its
//! relatives) by which references can be forged, and all of them need parts of the language that
//! handlers do not: types of function pointers, `for<'a>`, `dyn`, traits with lifetimes,
//! projections in the heads of implementations. So these are refused, by a walk over the syntax,
//! before anything is compiled. Macros could hide them: an extension defines none, and calls those
//! of a list. Attributes are those of a list, too.
//!
//! This wall stands on a list of holes that are known. It is not the only one.

use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use thiserror::Error;

/// Macros that an extension may call.
const MACROS: [&str; 12] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "matches",
    "panic",
    "unreachable",
    "todo",
    "unimplemented",
    "view",
    "debug_assert_eq",
    "debug_assert_ne",
];
/// Attributes that it may have.
const ATTRIBUTES: [&str; 13] = [
    "doc",
    "inline",
    "cold",
    "must_use",
    "allow",
    "warn",
    "deny",
    "expect",
    "derive",
    "cfg",
    "no_std",
    "test",
    "non_exhaustive",
];
/// What it may derive: what the compiler itself does.
const DERIVES: [&str; 9] = [
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "PartialEq",
    "Eq",
    "PartialOrd",
    "Ord",
    "Hash",
];
/// Words that must not stand in the arguments of a macro, which the walk does not understand.
const HIDDEN: [&str; 9] = [
    "unsafe", "dyn", "fn", "for", "extern", "impl", "trait", "static", "macro",
];

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
    /// A word in the arguments of a macro.
    #[error("`{0}` in the arguments of a macro")]
    Hidden(String),
    /// An attribute that is not on the list.
    #[error("the attribute {0}")]
    Attribute(String),
    /// A derive that is not on the list.
    #[error("a derived {0}")]
    Derive(String),
}

/// Judges the text of a file.
///
/// # Errors
/// [`GateError`]; `path` is for the message.
pub fn judge(path: &Path, text: &str) -> Result<(), GateError> {
    let file = syn::parse_file(text).map_err(|error| GateError::Syntax {
        path: path.to_owned(),
        error,
    })?;
    let mut walk = Walk { found: None };
    walk.visit_file(&file);
    match walk.found {
        None => Ok(()),
        Some((line, what)) => Err(GateError::Refused {
            path: path.to_owned(),
            line,
            what,
        }),
    }
}

/// Judges all Rust files below a folder; returns how many there are.
///
/// # Errors
/// [`GateError`] of the first one.
pub fn judge_folder(folder: &Path) -> Result<usize, GateError> {
    let read = |path: &Path, error| GateError::Read {
        path: path.to_owned(),
        error,
    };
    let mut count = 0;
    for path in sorted_entries(folder).map_err(|error| read(folder, error))? {
        // A link would lead out of the crate.
        let kind = std::fs::symlink_metadata(&path).map_err(|error| read(&path, error))?;
        if kind.is_dir() {
            count += judge_folder(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && kind.is_file() {
            let text = std::fs::read_to_string(&path).map_err(|error| read(&path, error))?;
            judge(&path, &text)?;
            count += 1;
        } else {
            let error = std::io::Error::other("not a Rust file of the crate");
            return Err(read(&path, error));
        }
    }
    Ok(count)
}

/// What lies in a folder, in the order of the names.
pub(crate) fn sorted_entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

struct Walk {
    /// The first thing that was refused, with its line.
    found: Option<(usize, Refusal)>,
}

impl Walk {
    fn refuse(&mut self, at: &impl Spanned, what: Refusal) {
        let line = at.span().start().line;
        self.found.get_or_insert((line, what));
    }

    fn judge_derives(&mut self, attribute: &syn::Attribute) {
        let mut wrong = None;
        let _ = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string);
            let name = name.unwrap_or_else(|| "path".to_owned());
            if !DERIVES.contains(&name.as_str()) {
                wrong.get_or_insert(name);
            }
            Ok(())
        });
        if let Some(name) = wrong {
            self.refuse(attribute, Refusal::Derive(name));
        }
    }

    fn judge_tokens(&mut self, at: &impl Spanned, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Group(group) => self.judge_tokens(at, group.stream()),
                proc_macro2::TokenTree::Ident(ident) => {
                    let word = ident.to_string();
                    if HIDDEN.contains(&word.as_str()) {
                        self.refuse(at, Refusal::Hidden(word));
                    }
                }
                proc_macro2::TokenTree::Punct(punct) if punct.as_char() == '!' => {
                    // Negation; a macro in a macro is one of the list, or unknown to the compiler
                    // here: its name is judged when it is expanded from a list's macro only.
                }
                _ => {}
            }
        }
    }
}

/// Whether a type names `<T as Trait>::Name`.
struct Projections(bool);

impl<'ast> Visit<'ast> for Projections {
    fn visit_qself(&mut self, _: &'ast syn::QSelf) {
        self.0 = true;
    }
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_expr_unsafe(&mut self, node: &'ast syn::ExprUnsafe) {
        self.refuse(node, Refusal::Unsafe);
    }

    fn visit_signature(&mut self, node: &'ast syn::Signature) {
        if node.unsafety.is_some() {
            self.refuse(node, Refusal::Unsafe);
        }
        if node.abi.is_some() {
            self.refuse(node, Refusal::Extern);
        }
        if node.asyncness.is_some() {
            self.refuse(node, Refusal::Async);
        }
        visit::visit_signature(self, node);
    }

    fn visit_expr_async(&mut self, node: &'ast syn::ExprAsync) {
        self.refuse(node, Refusal::Async);
    }

    fn visit_type_bare_fn(&mut self, node: &'ast syn::TypeBareFn) {
        self.refuse(node, Refusal::FunctionPointer);
    }

    fn visit_bound_lifetimes(&mut self, node: &'ast syn::BoundLifetimes) {
        self.refuse(node, Refusal::HigherRanked);
    }

    fn visit_type_trait_object(&mut self, node: &'ast syn::TypeTraitObject) {
        self.refuse(node, Refusal::TraitObject);
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        if node.unsafety.is_some() {
            self.refuse(node, Refusal::Unsafe);
        }
        let mut lifetimes = node.generics.lifetimes();
        let in_items = node.items.iter().any(|item| {
            matches!(item, syn::TraitItem::Type(of) if of.generics.lifetimes().next().is_some())
        });
        if lifetimes.next().is_some() || in_items {
            self.refuse(node, Refusal::TraitLifetime);
        }
        visit::visit_item_trait(self, node);
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if node.unsafety.is_some() {
            self.refuse(node, Refusal::Unsafe);
        }
        let mut projections = Projections(false);
        projections.visit_type(&node.self_ty);
        if let Some((_, path, _)) = &node.trait_ {
            projections.visit_path(path);
        }
        projections.visit_generics(&node.generics);
        if projections.0 {
            self.refuse(node, Refusal::Projection);
        }
        visit::visit_item_impl(self, node);
    }

    fn visit_item_foreign_mod(&mut self, node: &'ast syn::ItemForeignMod) {
        self.refuse(node, Refusal::Extern);
    }

    fn visit_item_extern_crate(&mut self, node: &'ast syn::ItemExternCrate) {
        self.refuse(node, Refusal::Extern);
    }

    fn visit_item_static(&mut self, node: &'ast syn::ItemStatic) {
        if matches!(node.mutability, syn::StaticMutability::Mut(_)) {
            self.refuse(node, Refusal::MutableStatic);
        }
        visit::visit_item_static(self, node);
    }

    fn visit_item_macro(&mut self, node: &'ast syn::ItemMacro) {
        if node.ident.is_some() {
            self.refuse(node, Refusal::MacroDefinition);
        }
        visit::visit_item_macro(self, node);
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        let name = node.path.segments.last().map(|one| one.ident.to_string());
        let name = name.unwrap_or_default();
        let is_known = match node.path.segments.len() {
            1 => MACROS.contains(&name.as_str()),
            2 => {
                name == "view"
                    && node
                        .path
                        .segments
                        .first()
                        .is_some_and(|one| one.ident == "spine")
            }
            _ => false,
        };
        if !is_known {
            self.refuse(node, Refusal::Macro(name));
            return;
        }
        self.judge_tokens(node, node.tokens.clone());
    }

    fn visit_attribute(&mut self, node: &'ast syn::Attribute) {
        let name = node.path().get_ident().map(ToString::to_string);
        let name = name.unwrap_or_else(|| "path".to_owned());
        if name == "derive" {
            self.judge_derives(node);
        } else if !ATTRIBUTES.contains(&name.as_str()) {
            self.refuse(node, Refusal::Attribute(name));
        }
    }

    // What the parser does not understand is not understood here either.
    fn visit_item(&mut self, node: &'ast syn::Item) {
        if matches!(node, syn::Item::Verbatim(_)) {
            self.refuse(node, Refusal::Hidden("syntax that is not known".to_owned()));
        }
        visit::visit_item(self, node);
    }

    fn visit_expr(&mut self, node: &'ast syn::Expr) {
        if matches!(node, syn::Expr::Verbatim(_)) {
            self.refuse(node, Refusal::Hidden("syntax that is not known".to_owned()));
        }
        visit::visit_expr(self, node);
    }

    fn visit_type(&mut self, node: &'ast syn::Type) {
        if matches!(node, syn::Type::Verbatim(_)) {
            self.refuse(node, Refusal::Hidden("syntax that is not known".to_owned()));
        }
        visit::visit_type(self, node);
    }
}
