//! The program whose cycles are measured.

use crate::layout::{FLOW_BYTES, FLOWS, FRAMES, ROWS, SLOT, VERDICTS, Word};
use core::hint::black_box;
use core::marker::PhantomData;
use flow_classify::flows::FlowMasks;
use flow_classify::key::Period;
use flow_classify::toeplitz::{Bytes, Nibbles, Pieces};
use flow_classify::{Classifier, ClassifierKind, Frame, HashTypes, Memory};
use tigon2_hal::Bus;

/// Frames, rows and table, and the SRAM that verdicts go to.
trait View: Frame + Memory {
    /// Selects the frame at a NIC address.
    fn begin(&mut self, start: u32);
    /// Loads a word of SRAM.
    fn load(&mut self, address: u32) -> u32;
    /// Stores a word to SRAM.
    fn store(&mut self, address: u32, value: u32);
}

/// Frames in SRAM beside rows in SRAM.
struct InSram<'a, B, P, const CACHED: u32> {
    bus: &'a mut B,
    start: u32,
    rows: u32,
    flows: u32,
    queues: &'a [u8; 128],
    pieces: PhantomData<P>,
}

impl<'a, B, P, const CACHED: u32> InSram<'a, B, P, CACHED> {
    fn new(bus: &'a mut B, queues: &'a [u8; 128]) -> Self {
        InSram {
            bus,
            start: 0,
            // A value, as in the firmware: known alignment would cost an instruction for each
            // look-up.
            rows: black_box(ROWS),
            flows: black_box(FLOWS),
            queues,
            pieces: PhantomData,
        }
    }
}

impl<B: Bus, P, const CACHED: u32> Frame for InSram<'_, B, P, CACHED> {
    #[inline(always)]
    fn word(&mut self, offset: u32) -> u32 {
        self.bus.load(self.start + offset)
    }

    #[inline(always)]
    fn half(&mut self, offset: u32) -> u32 {
        u32::from(self.bus.load_half(self.start + offset))
    }
}

impl<B: Bus, P: Pieces, const CACHED: u32> Memory for InSram<'_, B, P, CACHED> {
    type Pieces = P;

    #[inline(always)]
    fn row(&mut self, offset: u32) -> u32 {
        self.bus.load(self.rows + offset)
    }

    #[inline(always)]
    fn queue(&mut self, entry: u32) -> u32 {
        u32::from(self.queues[(entry & 127) as usize])
    }

    #[inline(always)]
    fn flows(&self) -> Option<FlowMasks> {
        match CACHED {
            0 => None,
            bytes => Some(FlowMasks::halves(bytes)),
        }
    }

    #[inline(always)]
    fn flow(&mut self, offset: u32) -> u32 {
        self.bus.load(self.flows + offset)
    }

    #[inline(always)]
    fn set_flow(&mut self, offset: u32, value: u32) {
        self.bus.store(self.flows + offset, value);
    }
}

impl<B: Bus, P: Pieces, const CACHED: u32> View for InSram<'_, B, P, CACHED> {
    #[inline(always)]
    fn begin(&mut self, start: u32) {
        self.start = black_box(start);
    }

    #[inline(always)]
    fn load(&mut self, address: u32) -> u32 {
        self.bus.load(address)
    }

    #[inline(always)]
    fn store(&mut self, address: u32, value: u32) {
        self.bus.store(address, value);
    }
}

/// Classifies all frames as often as the parameters say.
pub fn run<B: Bus>(bus: &mut B) {
    let load = |bus: &mut B, word: Word| bus.load(word as u32);
    let kind = ClassifierKind::from_number(load(bus, Word::Classifier));
    let period = match load(bus, Word::Period) {
        2 => Period::Halfword,
        4 => Period::Word,
        _ => Period::None,
    };
    let (queues, types) = (load(bus, Word::Queues), load(bus, Word::HashTypes));
    let types = HashTypes::from_bits(types);
    let Some(Ok(classifier)) = kind.map(|kind| Classifier::new(kind, queues, types, period)) else {
        return;
    };
    let mut table = [0; 128];
    let mut queue = 0;
    for entry in &mut table {
        *entry = queue as u8;
        queue = if queue + 1 == queues { 0 } else { queue + 1 };
    }
    let bits = load(bus, Word::PieceBits);
    if load(bus, Word::Cached) != 0 {
        let view = InSram::<B, Bytes, FLOW_BYTES>::new(bus, &table);
        rounds(view, classifier);
    } else if bits == 4 {
        rounds(InSram::<B, Nibbles, 0>::new(bus, &table), classifier);
    } else {
        rounds(InSram::<B, Bytes, 0>::new(bus, &table), classifier);
    }
}

#[inline(never)]
fn rounds<V: View>(mut view: V, mut classifier: Classifier) {
    let frames = view.load(Word::Frames as u32);
    let length = view.load(Word::Length as u32);
    let mut left = view.load(Word::Rounds as u32);
    while left != 0 {
        let (mut start, mut at) = (FRAMES, VERDICTS);
        for _ in 0..frames {
            view.begin(start);
            let verdict = classifier.classify(&mut view, length);
            view.store(at, verdict.queue | (verdict.hash_type as u32) << 8);
            view.store(at + 4, verdict.hash);
            start += SLOT;
            at += 8;
        }
        left -= 1;
    }
}
