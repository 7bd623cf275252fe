//! Macros that an extension may call, and what may stand in their arguments.
//!
//! Arguments are judged twice. The words of all of them are, whatever they mean: no macro,
//! attribute or keyword hides between them. Those that are expressions and patterns are then walked
//! like any other code. Only `view!` has a syntax of its own, of which words are enough. Those of
//! `log!` have a text between them.

use super::Refusal;
use super::walk::{MACROS, Walk};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Attribute, Expr, Ident, Macro, Pat, Token};

/// Words that must not stand in the arguments of a macro.
const HIDDEN: [&str; 10] = [
    "unsafe", "dyn", "fn", "for", "extern", "impl", "trait", "static", "macro", "mod",
];

impl Walk {
    /// Judges a call of a macro.
    pub(super) fn judge_macro(&mut self, node: &Macro) {
        let segments = node.path.segments.iter();
        let path: Vec<_> = segments.map(|one| one.ident.to_string()).collect();
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let name = match path[..] {
            [name] if MACROS.contains(&name) => name,
            ["spine", name @ ("view" | "log")] => name,
            _ => {
                let name = path.last().copied().unwrap_or_default();
                return self.refuse(node, Refusal::Macro(name.to_owned()));
            }
        };
        self.judge_tokens(node.tokens.clone());
        let is_known = match name {
            "view" => true,
            "log" => return self.judge_line(node),
            "matches" => self.walk_match(node),
            _ => self.walk_expressions(node),
        };
        if !is_known {
            self.refuse(node, Refusal::Unknown);
        }
    }

    /// Walks arguments that are expressions; whether they are.
    fn walk_expressions(&mut self, node: &Macro) -> bool {
        let parsed = node.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        parsed.is_ok_and(|expressions| {
            for expression in &expressions {
                self.visit_expr(expression);
            }
            true
        })
    }

    /// Walks the arguments of `matches!`; whether they are such.
    fn walk_match(&mut self, node: &Macro) -> bool {
        let parsed = node.parse_body_with(|input: ParseStream<'_>| {
            let value: Expr = input.parse()?;
            input.parse::<Token![,]>()?;
            let pattern = Pat::parse_multi_with_leading_vert(input)?;
            let guard: Option<Expr> = match input.parse::<Option<Token![if]>>()? {
                Some(_) => Some(input.parse()?),
                None => None,
            };
            input.parse::<Option<Token![,]>>()?;
            Ok((value, pattern, guard))
        });
        parsed.is_ok_and(|(value, pattern, guard)| {
            self.visit_expr(&value);
            self.visit_pat(&pattern);
            if let Some(guard) = &guard {
                self.visit_expr(guard);
            }
            true
        })
    }

    /// Judges words that are not parsed.
    pub(super) fn judge_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let [token, behind @ ..] = rest {
            match token {
                TokenTree::Group(group) => self.judge_tokens(group.stream()),
                TokenTree::Ident(word) => self.judge_word(word, behind),
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    self.judge_hidden_attribute(rest);
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            rest = behind;
        }
    }

    /// Judges a word by what follows: `name!(..)` calls a macro, `name != ..` and `return !(..)` do
    /// not.
    fn judge_word(&mut self, word: &Ident, behind: &[TokenTree]) {
        let name = word.to_string();
        let is_call = match behind {
            [
                TokenTree::Punct(mark),
                TokenTree::Group(_) | TokenTree::Ident(_),
                ..,
            ] => mark.as_char() == '!' && syn::parse_str::<Ident>(&name).is_ok(),
            _ => false,
        };
        if HIDDEN.contains(&name.as_str()) {
            self.refuse(word, Refusal::Hidden(name));
        } else if is_call && !MACROS.contains(&name.as_str()) {
            self.refuse(word, Refusal::Macro(name));
        }
    }

    /// Judges the attribute that a `#` begins: nothing else does.
    fn judge_hidden_attribute(&mut self, tokens: &[TokenTree]) {
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
        let end = tokens.iter().take(3).position(is_end).unwrap_or_default();
        let tokens: TokenStream = tokens.iter().take(end + 1).cloned().collect();
        let outer = Attribute::parse_outer.parse2(tokens.clone());
        let inner = || Attribute::parse_inner.parse2(tokens.clone());
        match outer.or_else(|_| inner()) {
            Ok(attributes) => attributes.iter().for_each(|one| self.visit_attribute(one)),
            Err(_) => self.refuse(&tokens, Refusal::Unknown),
        }
    }
}
