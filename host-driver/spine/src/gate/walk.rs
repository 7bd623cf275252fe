//! The walk over the syntax of a file: what is refused where.

use super::{Judged, Refusal};
use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Macros that an extension may call.
pub(super) const MACROS: [&str; 13] = [
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
    "log",
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

/// The walk over a file.
pub(super) struct Walk {
    /// The first thing that was refused, with its line.
    pub found: Option<(usize, Refusal)>,
    /// What the crate says, as far as it was judged.
    pub judged: Judged,
}

impl Walk {
    pub(super) fn refuse(&mut self, at: &impl Spanned, what: Refusal) {
        let line = at.span().start().line;
        self.found.get_or_insert((line, what));
    }

    fn judge_derives(&mut self, attribute: &syn::Attribute) {
        let mut wrong = None;
        let judged = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string);
            let name = name.unwrap_or_else(|| "path".to_owned());
            if !DERIVES.contains(&name.as_str()) {
                wrong.get_or_insert(name);
            }
            Ok(())
        });
        match wrong {
            Some(name) => self.refuse(attribute, Refusal::Derive(name)),
            None if judged.is_err() => self.refuse(attribute, Refusal::Unknown),
            None => {}
        }
    }
}

/// Whether the head of an implementation names `<T as Trait>::Name`, or `T::Name` for short.
struct Projections<'a> {
    /// The head's own parameters.
    generics: &'a syn::Generics,
    found: bool,
}

impl Projections<'_> {
    fn is_parameter(&self, name: &syn::Ident) -> bool {
        let mut parameters = self.generics.type_params();
        name == "Self" || parameters.any(|parameter| parameter.ident == *name)
    }
}

impl<'ast> Visit<'ast> for Projections<'_> {
    fn visit_qself(&mut self, _: &'ast syn::QSelf) {
        self.found = true;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let first = path.segments.first();
        self.found |=
            path.segments.len() > 1 && first.is_some_and(|first| self.is_parameter(&first.ident));
        visit::visit_path(self, path);
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
        let mut projections = Projections {
            generics: &node.generics,
            found: false,
        };
        projections.visit_type(&node.self_ty);
        if let Some((_, path, _)) = &node.trait_ {
            projections.visit_path(path);
        }
        projections.visit_generics(&node.generics);
        if projections.found {
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

    fn visit_use_rename(&mut self, node: &'ast syn::UseRename) {
        let name = node.rename.unraw().to_string();
        let mut lists = [&MACROS[..], &ATTRIBUTES, &DERIVES].into_iter().flatten();
        if lists.any(|one| *one == name) {
            self.refuse(node, Refusal::Renamed(name));
        }
    }

    fn visit_item_macro(&mut self, node: &'ast syn::ItemMacro) {
        if node.ident.is_some() {
            self.refuse(node, Refusal::MacroDefinition);
        }
        node.attrs.iter().for_each(|one| self.visit_attribute(one));
        if !self.judge_interface(&node.mac) {
            self.visit_macro(&node.mac);
        }
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        self.judge_macro(node);
    }

    fn visit_attribute(&mut self, node: &'ast syn::Attribute) {
        let name = node.path().get_ident().map(ToString::to_string);
        let name = name.unwrap_or_else(|| "path".to_owned());
        if name == "derive" {
            self.judge_derives(node);
        } else if !ATTRIBUTES.contains(&name.as_str()) {
            self.refuse(node, Refusal::Attribute(name));
        }
        // A macro may stand for a value, as in `#[doc = include_str!(..)]`.
        match &node.meta {
            syn::Meta::Path(_) => {}
            syn::Meta::List(list) => self.judge_tokens(list.tokens.clone()),
            syn::Meta::NameValue(pair) => self.visit_expr(&pair.value),
        }
    }

    // Those of macros and attributes are judged above. Any other words are syntax that the parser does
    // not understand, so it is not understood here either.
    fn visit_token_stream(&mut self, node: &'ast TokenStream) {
        self.refuse(node, Refusal::Unknown);
    }
}
