//! What the extension sends to the process that drives the card: lines of its log, and words.

use anyhow::Result;
use host_driver::nic::ExtensionCard;
use host_driver::{DmaMemory, Nic, Transport};
use host_interface::spine::rings::{DRIVER, SLOTS_MOST};
use spine_linker::endpoint::{Endpoint, RingSizes, doorbell};
use spine_linker::extensions::Extensions;
use spine_linker::load::EndpointConfig;
use tigon2_sim::SimTransport;

/// The endpoint's number, counted from 0 on.
const NUMBER: u32 = DRIVER - 1;
const SIZES: RingSizes = RingSizes {
    slots: SLOTS_MOST,
    bulk: 0,
};
/// Most lines that are printed.
const MOST: usize = 10;

fn digits(words: &[u32]) -> String {
    let words = words.iter().map(|word| format!("{word:#x}"));
    words.collect::<Vec<_>>().join(" ")
}

/// The driver's endpoint, and what came there.
pub(super) struct Log {
    endpoint: Endpoint<DmaMemory>,
    lines: Vec<String>,
    /// How many came beyond those.
    more: u32,
}

impl Log {
    /// Opens the endpoint.
    pub fn open(extensions: &mut Extensions, nic: &mut Nic<SimTransport>) -> Result<Log> {
        let memory = nic.transport().allocate(SIZES.bytes())?;
        let config = EndpointConfig {
            address: memory.iova(),
            sizes: SIZES,
            handlers: 0,
            interrupts: false,
        };
        extensions.open_endpoint(&mut ExtensionCard(nic), NUMBER, &config)?;
        Ok(Log {
            endpoint: Endpoint::new(memory, SIZES),
            lines: Vec::new(),
            more: 0,
        })
    }

    /// Takes what has come, which makes room for more.
    pub fn take(&mut self, extensions: &mut Extensions, nic: &mut Nic<SimTransport>) -> Result<()> {
        let before = self.endpoint.taken();
        while let Some(message) = self.endpoint.take()? {
            if self.lines.len() == MOST {
                self.more += 1;
                continue;
            }
            let words = &message.arguments;
            let texts = extensions.texts(message.from.domain);
            let line = texts.and_then(|texts| texts.line(words));
            self.lines.push(line.unwrap_or_else(|| digits(words)));
        }
        if self.endpoint.taken() != before {
            let halfword = doorbell(self.endpoint.memory())?;
            extensions.ring_endpoint(&mut ExtensionCard(nic), NUMBER, halfword)?;
        }
        Ok(())
    }

    /// Prints it.
    pub fn print(&self) {
        for line in &self.lines {
            println!("  log: {line}");
        }
        if self.more != 0 {
            println!("  log: {} more", self.more);
        }
    }
}
