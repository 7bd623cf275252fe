//! The graph of calls: no circles, so much stack, what handlers reach.

use super::flow::Summary;
use super::{Proof, Refused};
use crate::link::Linked;
use spine_image::interface;
use std::collections::{BTreeMap, BTreeSet};

struct Graph<'a> {
    linked: &'a Linked,
    summaries: &'a BTreeMap<u32, Summary>,
    /// Bytes of stack of functions that are known.
    depths: BTreeMap<u32, u32>,
    /// Functions on the way from the root to here.
    path: BTreeSet<u32>,
}

/// Judges all calls.
pub fn judge(
    linked: &Linked,
    summaries: &BTreeMap<u32, Summary>,
    limit: u32,
) -> Result<Proof, Refused> {
    let mut graph = Graph {
        linked,
        summaries,
        depths: BTreeMap::new(),
        path: BTreeSet::new(),
    };
    // All of them: none of the text calls itself.
    for address in summaries.keys() {
        graph.depth(*address)?;
    }
    let mut stack = BTreeMap::new();
    for entry in linked.entries.iter().chain([&linked.init]) {
        if !summaries.contains_key(entry) {
            return Err(Refused::Entry(*entry));
        }
        let needs = graph.depth(*entry)?;
        if needs > limit {
            return Err(Refused::Stack {
                function: graph.name(*entry),
                needs,
                has: limit,
            });
        }
        stack.insert(*entry, needs);
    }
    for entry in &linked.entries {
        graph.judge_ephemeral(*entry)?;
    }
    let most = stack.values().copied().max().unwrap_or(0);
    Ok(Proof { stack, most })
}

impl Graph<'_> {
    fn name(&self, address: u32) -> String {
        let found = self.linked.functions.iter().find(|(at, ..)| *at == address);
        found.map_or_else(|| format!("{address:#x}"), |(.., name)| name.clone())
    }

    fn import(&self, address: u32) -> Option<&'static interface::Interface> {
        let found = self.linked.imports.iter().find(|(at, _)| *at == address);
        found.and_then(|(_, number)| interface::ALL.get(*number))
    }

    /// Bytes of stack that an import needs; the gate's come below those of what it calls.
    fn import_stack(&self, address: u32) -> u32 {
        let stack = self.import(address).map_or(0, |import| import.stack);
        let gate = interface::ALL.get(interface::Number::Call as usize);
        if self.import(address) == gate {
            stack + self.linked.called_stack
        } else {
            stack
        }
    }

    /// Bytes of stack that a function needs with all that it calls.
    fn depth(&mut self, address: u32) -> Result<u32, Refused> {
        if let Some(known) = self.depths.get(&address) {
            return Ok(*known);
        }
        let Some(summary) = self.summaries.get(&address) else {
            return Ok(self.import_stack(address));
        };
        if !self.path.insert(address) {
            return Err(Refused::Recursion(self.name(address)));
        }
        let mut depth = summary.frame;
        for (callee, frame) in &summary.calls {
            depth = depth.max(frame + self.depth(*callee)?);
        }
        self.path.remove(&address);
        self.depths.insert(address, depth);
        Ok(depth)
    }

    /// A handler must not reach what must not be cut off.
    fn judge_ephemeral(&self, entry: u32) -> Result<(), Refused> {
        let mut open = vec![entry];
        let mut seen = BTreeSet::new();
        while let Some(address) = open.pop() {
            if !seen.insert(address) {
                continue;
            }
            match self.summaries.get(&address) {
                Some(summary) => open.extend(summary.calls.keys()),
                None => match self.import(address) {
                    Some(import) if import.durable => {
                        return Err(Refused::NotEphemeral {
                            function: self.name(entry),
                            import: import.name,
                        });
                    }
                    _ => {}
                },
            }
        }
        Ok(())
    }
}
