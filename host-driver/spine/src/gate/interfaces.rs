//! The procedures that a crate exports and imports, by name.
//!
//! `spine::import!(FIND = "routes.find");` and `spine::export!` stand where items do, and nowhere
//! else. So the container says what a crate wants of other extensions before any of it runs, and
//! the policy can refuse it by name.

use super::Refusal;
use super::walk::Walk;
use std::collections::BTreeSet;
use syn::parse::ParseStream;
use syn::{Ident, LitStr, Macro, Token, Visibility};

/// What crates export and import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Names of procedures that other extensions may call.
    pub exports: BTreeSet<String>,
    /// Names of procedures of other extensions.
    pub imports: BTreeSet<String>,
}

impl Walk {
    /// Judges a macro that stands for an item, if it declares a procedure; whether it does.
    pub(super) fn judge_interface(&mut self, node: &Macro) -> bool {
        let segments = node.path.segments.iter();
        let path: Vec<_> = segments.map(|one| one.ident.to_string()).collect();
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let names = match path[..] {
            ["spine", "export"] => &mut self.judged.interfaces.exports,
            ["spine", "import"] => &mut self.judged.interfaces.imports,
            _ => return false,
        };
        let parsed = node.parse_body_with(|input: ParseStream<'_>| {
            input.parse::<Visibility>()?;
            input.parse::<Ident>()?;
            input.parse::<Token![=]>()?;
            input.parse::<LitStr>()
        });
        match parsed {
            Ok(name) if is_name(&name.value()) => {
                names.insert(name.value());
            }
            Ok(name) => self.refuse(node, Refusal::InterfaceName(name.value())),
            Err(_) => self.refuse(node, Refusal::Unknown),
        }
        true
    }
}

/// Whether a text is the name of an extension, a dot, and the name of a procedure.
fn is_name(text: &str) -> bool {
    let is_word = |word: &str| {
        let mut letters = word.bytes();
        !word.is_empty()
            && letters.all(|one| matches!(one, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
    };
    text.split_once('.')
        .is_some_and(|(extension, procedure)| is_word(extension) && is_word(procedure))
}
