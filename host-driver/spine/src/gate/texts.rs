//! The texts of a crate's log.
//!
//! `spine::log!(context, "no route for {:x}", address)` stands where code does. So the container has
//! each text that the card may send the number of, whether or not that line is ever run.

use super::Refusal;
use super::walk::Walk;
use spine_text::TEXTS_MOST;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Expr, LitStr, Macro, Token};

/// The texts of a crate's log, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(BTreeMap<u32, String>);

impl Texts {
    /// All of them, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// Adds one that stands in front of so many words.
    fn add(&mut self, text: String, words: usize) -> Result<(), Refusal> {
        let holes = spine_text::holes(&text).map_err(Refusal::Text)?;
        if holes != words {
            return Err(Refusal::Words { holes, words });
        }
        let count = self.0.len();
        match self.0.entry(spine_text::number(&text)) {
            Entry::Occupied(there) if *there.get() != text => {
                Err(Refusal::TextNumber(there.get().clone(), text))
            }
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(_) if count == TEXTS_MOST => Err(Refusal::TooManyTexts),
            Entry::Vacant(free) => {
                free.insert(text);
                Ok(())
            }
        }
    }
}

impl Walk {
    /// Judges the arguments of `log!`, keeps its text, and walks the rest.
    pub(super) fn judge_line(&mut self, node: &Macro) {
        let parsed = node.parse_body_with(|input: ParseStream<'_>| {
            let context: Expr = input.parse()?;
            input.parse::<Token![,]>()?;
            let text: LitStr = input.parse()?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            let words = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
            Ok((context, text, words))
        });
        let Ok((context, text, words)) = parsed else {
            return self.refuse(node, Refusal::NoLine);
        };
        self.visit_expr(&context);
        words.iter().for_each(|word| self.visit_expr(word));
        if let Err(refusal) = self.judged.texts.add(text.value(), words.len()) {
            self.refuse(&text, refusal);
        }
    }
}
