//! What is to hold of the machines, and in which bounds Spin searches.

use crate::promela::{Cpu, Machines};
use std::fmt::{self, Write};

const TRANSMIT: &str = include_str!("../promela/transmit.pml");
const RECEIVE: &str = include_str!("../promela/receive.pml");

/// What a property claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The environment's assertions, and that nothing is left undone when all has come to rest.
    Safety,
    /// This state is reached in some run.
    Witness(&'static str),
    /// This state is reached again and again in every run that is fair to all processes, with
    /// endless load and no faults.
    Recurs(&'static str),
    /// This state is reached in no run.
    Never(&'static str),
}

/// The size of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Frames.
    pub frames: u8,
    /// Parts of a long one.
    pub parts: u8,
    /// Faults of a DMA channel.
    pub faults: u8,
    /// Frames of the plain path that come between.
    pub plain: u8,
    /// Frames that the MAC gives up.
    pub give_ups: u8,
    /// Whether an endpoint is closed at any moment.
    pub closes: bool,
}

impl Bounds {
    /// For the tests.
    pub const QUICK: Bounds = Bounds {
        frames: 2,
        parts: 3,
        faults: 1,
        plain: 1,
        give_ups: 1,
        closes: true,
    };
    /// For the command: three frames of four parts.
    pub const FULL: Bounds = Bounds {
        frames: 3,
        parts: 4,
        faults: 1,
        plain: 1,
        give_ups: 1,
        closes: true,
    };
    /// Whether a search in them takes seconds.
    pub fn is_small(&self) -> bool {
        self.frames * self.parts <= Bounds::QUICK.frames * Bounds::QUICK.parts
    }

    /// With both directions at once, or with doorbells.
    const BOTH: Bounds = Bounds {
        frames: 1,
        parts: 2,
        faults: 0,
        plain: 0,
        give_ups: 0,
        closes: false,
    };
    /// With endless load.
    const SATURATED: Bounds = Bounds {
        frames: 2,
        parts: 3,
        faults: 0,
        plain: 0,
        give_ups: 0,
        closes: false,
    };
    /// With endless load in both directions: the product of two worlds.
    const BOTH_SATURATED: Bounds = Bounds {
        parts: 2,
        ..Bounds::SATURATED
    };
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = if self.frames == 1 { "frame" } else { "frames" };
        write!(f, "{} {frames}, {} parts", self.frames, self.parts)?;
        let beside = [
            (self.faults, "channel fault"),
            (self.plain, "plain frame"),
            (self.give_ups, "given up"),
            (u8::from(self.closes), "closed"),
        ];
        for (count, what) in beside.iter().filter(|(count, _)| *count != 0) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

/// Something that is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// What it says.
    pub name: &'static str,
    /// The directions that it is about.
    pub cpus: &'static [Cpu],
    /// What it claims.
    pub claim: Claim,
    /// Whether the host lets the card use the bus in one direction at a time.
    pub one_at_a_time: bool,
    /// Whether CPU B knows of descriptors by doorbells only.
    pub doorbells: bool,
}

const SEND_SIDE: &[Cpu] = &[Cpu::Transmit];
const RECEIVE_SIDE: &[Cpu] = &[Cpu::Receive];
const BOTH_SIDES: &[Cpu] = &[Cpu::Transmit, Cpu::Receive];
const SENDING: &str = "sdma && (coarse_send || fine_send)";
const RECEIVING: &str = "(coarse_rdma || fine_rdma) && recv";
const DUPLEX: &str = "(coarse_send || fine_send) && recv";
const TWO_ON_THE_BUS: &str = "reading && on_the_bus";

const fn property(name: &'static str, cpus: &'static [Cpu], claim: Claim) -> Property {
    Property {
        name,
        cpus,
        claim,
        one_at_a_time: false,
        doorbells: false,
    }
}

/// All properties.
pub const PROPERTIES: [Property; 12] = [
    property(
        "No frame is sent wrong, lost or completed twice",
        SEND_SIDE,
        Claim::Safety,
    ),
    property(
        "No buffer is completed wrong, lost or completed twice",
        RECEIVE_SIDE,
        Claim::Safety,
    ),
    Property {
        name: "Every doorbell is seen",
        cpus: SEND_SIDE,
        claim: Claim::Safety,
        one_at_a_time: false,
        doorbells: true,
    },
    property(
        "Formula 1: fetching overlaps sending",
        SEND_SIDE,
        Claim::Witness(SENDING),
    ),
    property(
        "Fetching overlaps sending within a frame",
        SEND_SIDE,
        Claim::Witness("SDMA_state == SDMA_SdmaRest && SEND_state == SEND_Watched && position > 0"),
    ),
    property(
        "Fetching overlaps sending again and again",
        SEND_SIDE,
        Claim::Recurs(SENDING),
    ),
    property(
        "Formula 2: writing overlaps receiving",
        RECEIVE_SIDE,
        Claim::Witness(RECEIVING),
    ),
    property(
        "Writing overlaps receiving again and again",
        RECEIVE_SIDE,
        Claim::Recurs(RECEIVING),
    ),
    property(
        "Formula 3: sending overlaps receiving",
        BOTH_SIDES,
        Claim::Witness(DUPLEX),
    ),
    property(
        "Sending overlaps receiving again and again",
        BOTH_SIDES,
        Claim::Recurs(DUPLEX),
    ),
    property(
        "Both channels use the bus",
        BOTH_SIDES,
        Claim::Witness(TWO_ON_THE_BUS),
    ),
    Property {
        name: "Formula 4: one at a time, never both",
        cpus: BOTH_SIDES,
        claim: Claim::Never(TWO_ON_THE_BUS),
        one_at_a_time: true,
        doorbells: false,
    },
];

impl Property {
    /// The bounds in which it is verified, if those of a single direction are `bounds`.
    pub fn bounds(&self, bounds: Bounds) -> Bounds {
        match self.claim {
            Claim::Recurs(_) if self.cpus.len() > 1 => Bounds {
                frames: bounds.frames - 1,
                ..Bounds::BOTH_SATURATED
            },
            Claim::Recurs(_) => Bounds {
                frames: bounds.frames,
                parts: bounds.parts,
                ..Bounds::SATURATED
            },
            _ if self.cpus.len() > 1 && bounds.is_small() => Bounds::BOTH,
            _ if self.cpus.len() > 1 => Bounds {
                parts: bounds.parts,
                faults: bounds.faults,
                ..Bounds::BOTH
            },
            // What a frame is made of does not ring.
            _ if self.doorbells => Bounds {
                frames: bounds.frames,
                closes: true,
                ..Bounds::BOTH
            },
            _ if self.cpus == RECEIVE_SIDE => Bounds { plain: 0, ..bounds },
            _ => Bounds {
                give_ups: 0,
                ..bounds
            },
        }
    }

    /// The formula that Spin has to judge, if it is not about assertions.
    pub(crate) fn formula(&self) -> Option<String> {
        match self.claim {
            Claim::Safety => None,
            Claim::Witness(state) | Claim::Never(state) => Some(format!("[] !({state})")),
            Claim::Recurs(state) => Some(format!("[] <> ({state})")),
        }
    }

    /// The model: machines, environment, formula.
    pub fn model(&self, machines: &Machines, bounds: Bounds) -> String {
        let bounds = self.bounds(bounds);
        let mut text = format!(
            "#define FRAMES {}\n#define PARTS {}\n#define FAULTS {}\n#define PLAIN {}\n\
             #define GIVE_UPS {}\n#define CLOSES {}\n#define BUFFERS {}\n",
            bounds.frames,
            bounds.parts,
            bounds.faults,
            bounds.plain,
            bounds.give_ups,
            u8::from(bounds.closes),
            bounds.frames,
        );
        if matches!(self.claim, Claim::Recurs(_)) {
            text.push_str("#define SATURATED\n");
        }
        if self.doorbells {
            text.push_str("#define DOORBELLS\n");
        }
        if self.cpus.len() > 1 {
            text.push_str("#define BOTH_WIRES\n");
        }
        text.push_str(if self.one_at_a_time {
            "#define CAN_READ (!on_the_bus)\n#define CAN_WRITE (!reading)\n"
        } else {
            "#define CAN_READ true\n#define CAN_WRITE true\n"
        });
        // Of each channel: its transfer is on the bus. And whether a part has come in since the last
        // one left.
        text.push_str("bool reading, on_the_bus, came_in;\n");
        text.push_str(&machines.declarations(self.cpus));
        for cpu in self.cpus {
            text.push_str(match cpu {
                Cpu::Transmit => TRANSMIT,
                Cpu::Receive => RECEIVE,
            });
        }
        let strict = matches!(self.claim, Claim::Recurs(_));
        text.push_str(&machines.processes(self.cpus, strict));
        if let Some(formula) = self.formula() {
            writeln!(text, "ltl claim {{ {formula} }}").unwrap_or_default();
        }
        text
    }
}
