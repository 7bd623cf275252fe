//! The object-code verifier: what is proven of an extension's final words.
//!
//! Nothing is believed of the compiler here. Each function is walked along all its ways, with the
//! stack pointer's distance from where it was at entry:
//!
//! | proven | how |
//! | --- | --- |
//! | only instructions that the chip has, none that stop it or dispatch | every word of the text is classified |
//! | control stays in the function, but for calls | branches and jumps end at its own instructions; no way leads over its end |
//! | calls go to functions of the object and to imports | `jal`, and `j` with an empty frame; no computed jump but `jr ra` |
//! | a return goes back to the caller | the return address is read from where this function has put it, and `sp` is where it was |
//! | s0 to s8 are as they were, as the runtime relies on | likewise |
//! | no recursion | the graph of calls has no circle |
//! | so much stack and no more | `sp` moves by constants, frames add up along the calls |
//! | handlers are ephemeral | none reaches an interface that asks for a `Durable` |
//!
//! What is not proven in the grade `language`: where loads and stores go. That is the language's
//! part, and what the grade `sandbox` is to prove.

mod calls;
mod flow;

use crate::link::Linked;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;
use tigon2_chip::instruction::{Class, FUNCTION_JOFF, FUNCTION_PRI, classify, function, opcode};

/// Why words are refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// An instruction that the chip lacks, or that an extension must not have.
    #[error("{at}: {mnemonic} ({why})")]
    Instruction {
        /// Where.
        at: Place,
        /// Which.
        mnemonic: &'static str,
        /// Why.
        why: String,
    },
    /// A branch or jump out of its function, other than a call.
    #[error(
        "{at}: a jump to {target:#x}, which is neither in this function nor the start of another"
    )]
    Jump {
        /// Where.
        at: Place,
        /// To where.
        target: u32,
    },
    /// A jump to an address that is computed.
    #[error("{at}: a jump to an address in a register")]
    ComputedJump {
        /// Where.
        at: Place,
    },
    /// A jump in the delay slot of another, or a delay slot behind the function.
    #[error("{at}: this instruction may not stand in a delay slot")]
    DelaySlot {
        /// Where.
        at: Place,
    },
    /// A way over the end of the function.
    #[error("{at}: control runs past the function's end")]
    FallsOut {
        /// Where.
        at: Place,
    },
    /// The stack pointer is changed by something else than a constant.
    #[error("{at}: the stack pointer moves by an amount that is no constant")]
    StackPointer {
        /// Where.
        at: Place,
    },
    /// Two ways with different frames meet.
    #[error("{at}: the stack pointer differs between the paths to here")]
    UnevenStack {
        /// Where.
        at: Place,
    },
    /// A frame that grows beyond its function's entry, or is not gone at the end.
    #[error("{at}: the stack pointer is {offset} bytes off at the return")]
    Frame {
        /// Where.
        at: Place,
        /// Bytes.
        offset: i32,
    },
    /// A return to another address than the caller's.
    #[error("{at}: the return address is not the caller's")]
    ReturnAddress {
        /// Where.
        at: Place,
    },
    /// A return with another value in a register than the caller's, which is to be kept.
    #[error("{at}: register ${register} is not as the caller left it")]
    Kept {
        /// Where.
        at: Place,
        /// Which.
        register: usize,
    },
    /// A register that is not an extension's.
    #[error("{at}: an extension may not use register ${register}")]
    Register {
        /// Where.
        at: Place,
        /// Which.
        register: usize,
    },
    /// A function that calls itself, by others maybe.
    #[error("{0} calls itself")]
    Recursion(String),
    /// More stack than the policy grants.
    #[error("{function} needs {needs} bytes of stack, but is granted {has}")]
    Stack {
        /// Which handler, or `init`.
        function: String,
        /// Bytes that it needs.
        needs: u32,
        /// Bytes that it may have.
        has: u32,
    },
    /// A handler that calls what must not be cut off.
    #[error("the handler {function} calls {import}, which only init may call")]
    NotEphemeral {
        /// Which handler.
        function: String,
        /// Which interface.
        import: &'static str,
    },
    /// A function whose address is taken is no function.
    #[error("the extension passes the address {0:#x}, which is no function")]
    Entry(u32),
}

/// An instruction, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function's name.
    pub function: String,
    /// Offset in it.
    pub offset: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} + {:#x}", self.function, self.offset)
    }
}

/// What was proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Bytes of stack that each entry needs, `init` included, by its address.
    pub stack: BTreeMap<u32, u32>,
    /// The most of them.
    pub most: u32,
}

/// Proves what can be of an extension at its addresses; handlers and `init` may need `stack`
/// bytes of stack.
///
/// # Errors
/// The first thing that is not so.
pub fn verify(linked: &Linked, stack: u32) -> Result<Proof, Refused> {
    classify_all(linked)?;
    let summaries = summaries(linked)?;
    calls::judge(linked, &summaries, stack)
}

/// Walks all functions. Whether control goes on behind a call depends on whether the function
/// that is called ever returns: none does, until a way is found on which it does. A run that
/// returns has called finitely many functions that returned, so none is overlooked.
fn summaries(linked: &Linked) -> Result<BTreeMap<u32, flow::Summary>, Refused> {
    let mut returning = BTreeSet::new();
    loop {
        let mut summaries = BTreeMap::new();
        for index in 0..linked.functions.len() {
            let summary = flow::walk(linked, index, &returning)?;
            let address = linked.functions.get(index).map_or(0, |(at, ..)| *at);
            summaries.insert(address, summary);
        }
        let found = summaries.iter().filter(|(_, summary)| summary.returns);
        let found: BTreeSet<u32> = found.map(|(address, _)| *address).collect();
        if found == returning {
            return Ok(summaries);
        }
        returning = found;
    }
}

/// Looks at every word of the text, wherever control may go.
fn classify_all(linked: &Linked) -> Result<(), Refused> {
    for (address, word) in (linked.text_base..).step_by(4).zip(linked.text_words()) {
        let refused = |mnemonic, why: &str| {
            Err(Refused::Instruction {
                at: place(linked, address),
                mnemonic,
                why: why.to_owned(),
            })
        };
        match classify(*word) {
            Class::Forbidden(why, mnemonic) => return refused(mnemonic, &why.to_string()),
            Class::Proven(_) | Class::Allowed(_) => {}
        }
        if opcode(*word) == 0 {
            match function(*word) {
                FUNCTION_JOFF => return refused("joff", "dispatches"),
                FUNCTION_PRI => return refused("pri", "the dispatch loop's"),
                0x0D => return refused("break", "stops the CPU"),
                0x09 => return refused("jalr", "a computed call"),
                _ => {}
            }
        }
        // Branches that write the return address.
        if opcode(*word) == 1 && *word >> 16 & 0x1E != 0 && *word >> 16 & 0x10 != 0 {
            return refused("bgezal", "a call by a branch");
        }
    }
    Ok(())
}

/// The function that an address is in, and where in it.
fn place(linked: &Linked, address: u32) -> Place {
    let found = linked
        .functions
        .iter()
        .find(|(start, bytes, _)| address.wrapping_sub(*start) < *bytes);
    match found {
        Some((start, _, name)) => Place {
            function: name.clone(),
            offset: address - start,
        },
        None => Place {
            function: linked.name.clone(),
            offset: address.wrapping_sub(linked.text_base),
        },
    }
}
