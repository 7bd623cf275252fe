//! The state of one CPU and its way to memory.
//!
//! Hardware reference, sections 2 and 3.4.

use super::decode::{Cache, Decoded};
use super::history::{History, Mark};
use crate::memory::{SramBytes, load, store};
use tigon2_chip::instruction::{immediate, rs};
use tigon2_chip::memory::{
    REGISTERS_BASE, REGISTERS_BYTES, SCRATCH_BASE, SPILL_WINDOW, SRAM_MAX_BYTES,
};
use tigon2_model::CpuFault;

/// What an instruction did besides computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// It loaded from SRAM or the spill window.
    LoadSram,
    /// It stored to SRAM or the spill window.
    StoreSram,
    /// It loaded from the scratch pad.
    LoadScratch,
    /// It stored to the scratch pad.
    StoreScratch,
    /// It wants register `offset` of the chip in general register `target`; see
    /// [`Core::complete_read`].
    ReadRegister {
        /// Byte offset in the register page.
        offset: u32,
        /// Number of the general register.
        target: usize,
    },
    /// It stores to register `offset` of the chip.
    WriteRegister {
        /// Byte offset in the register page.
        offset: u32,
        /// The value.
        value: u32,
    },
    /// It loaded from where nothing is, or a part of a register, and got 0.
    LoadNothing {
        /// The address.
        address: u32,
    },
    /// It stored to where nothing is, or to a part of a register, and nothing changed.
    StoreNothing {
        /// The address.
        address: u32,
        /// The value.
        value: u32,
    },
}

/// An instruction that has been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Where it stood.
    pub pc: u32,
    /// The instruction.
    pub word: u32,
    /// What it did besides computing.
    pub access: Access,
    /// Whether it is a jump or a branch that was taken.
    pub taken: bool,
}

/// Where an address of a CPU leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// SRAM, at an address that still wraps.
    Sram(u32),
    /// The scratch pad, at an offset.
    Scratch(usize),
    /// A register of the chip, at an offset.
    Register(u32),
}

/// Where a CPU is in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The instruction to execute next.
    pub(super) pc: u32,
    /// The one after that: differs from `pc + 4` in a delay slot.
    pub(super) next: u32,
    /// Whether the instruction to execute next stands behind a jump, in its delay slot.
    pub(super) slot: bool,
}

impl Position {
    /// At `pc`, with an empty pipeline.
    fn at(pc: u32) -> Position {
        Position {
            pc,
            next: pc.wrapping_add(4),
            slot: false,
        }
    }

    /// One instruction on, which jumps or not; what it does to the program counter comes
    /// after that.
    #[inline(always)]
    pub(super) fn advance(&mut self, jumps: bool) {
        *self = Position {
            slot: jumps,
            ..Position::at(self.next)
        };
    }

    /// Whether the instruction behind the next one is elsewhere.
    #[inline(always)]
    pub(super) fn turns(&self) -> bool {
        self.next != self.pc.wrapping_add(4)
    }
}

/// What a CPU has besides its scratch pad, to put it back where it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) gpr: [u32; 32],
    position: Position,
    retired: u64,
    mark: Mark,
}

/// One CPU.
#[derive(Debug)]
pub struct Core {
    pub(super) gpr: [u32; 32],
    pub(super) position: Position,
    running: bool,
    pub(super) scratch: Vec<u8>,
    pub(super) cache: Cache,
    spill_base: u32,
    pub(super) retired: u64,
    pub(super) history: History,
}

impl Core {
    /// A halted CPU with a zeroed scratch pad of a power of two of bytes.
    pub fn new(scratch_bytes: u32) -> Self {
        Core {
            gpr: [0; 32],
            position: Position::at(0),
            running: false,
            scratch: vec![0; scratch_bytes as usize],
            cache: Cache::new(scratch_bytes),
            spill_base: 0,
            retired: 0,
            history: History::new(),
        }
    }

    /// Whether it executes instructions.
    pub fn running(&self) -> bool {
        self.running
    }

    /// Runs from `pc` on with an empty pipeline (3.4, C). Where it stands already it goes
    /// on: a jump whose delay slot is still to come is not lost.
    pub fn start(&mut self, pc: u32) {
        if pc != self.position.pc {
            self.jump(pc);
        }
        self.running = true;
    }

    /// Stops behind the last executed instruction.
    pub fn halt(&mut self) {
        self.running = false;
    }

    /// The instruction to execute next.
    pub fn pc(&self) -> u32 {
        self.position.pc
    }

    /// General register `n` (0..32).
    pub fn gpr(&self, n: usize) -> u32 {
        self.gpr[n]
    }

    /// All general registers.
    pub fn gprs(&self) -> &[u32; 32] {
        &self.gpr
    }

    /// Sets general register `n` (0..32); register 0 stays 0.
    pub fn set_gpr(&mut self, n: usize, value: u32) {
        if n != 0 {
            self.gpr[n] = value;
        }
    }

    /// Moves the spill window: SRAM address = address - `base` (2, C!).
    pub fn set_spill_base(&mut self, base: u32) {
        self.spill_base = base;
    }

    /// How many instructions it has executed.
    pub fn retired(&self) -> u64 {
        self.retired
    }

    /// Counts instructions that were not executed one by one.
    pub(crate) fn retire(&mut self, instructions: u64) {
        self.retired += instructions;
    }

    /// The program counters of the last instructions, oldest first.
    pub fn history(&self) -> impl Iterator<Item = u32> + '_ {
        self.history.iter()
    }

    /// Where it is now.
    #[inline]
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            gpr: self.gpr,
            position: self.position,
            retired: self.retired,
            mark: self.history.mark(),
        }
    }

    /// Takes back what it has executed since a checkpoint, no more than
    /// [`HISTORY`](super::HISTORY) instructions. What they stored is the caller's affair.
    pub(crate) fn put_back(&mut self, checkpoint: &Checkpoint) {
        self.gpr = checkpoint.gpr;
        self.position = checkpoint.position;
        self.retired = checkpoint.retired;
        self.history.take_back(checkpoint.mark);
    }

    /// The word at a byte offset of the scratch pad; the offset wraps.
    pub fn scratch_word(&self, offset: u32) -> u32 {
        u32::from_be_bytes(load(&self.scratch, self.scratch_offset(offset)))
    }

    /// Stores the word at a byte offset of the scratch pad; the offset wraps.
    pub fn set_scratch_word(&mut self, offset: u32, value: u32) {
        let at = self.scratch_offset(offset);
        store(&mut self.scratch, at, value.to_be_bytes());
        self.cache.forget(at);
    }

    fn scratch_offset(&self, offset: u32) -> usize {
        offset as usize & (self.scratch.len() - 1) & !3
    }

    /// Gives the value of the register that [`Access::ReadRegister`] asked for.
    pub fn complete_read(&mut self, target: usize, value: u32) {
        self.set_gpr(target, value);
    }

    /// Executes one instruction.
    ///
    /// # Errors
    /// [`CpuFault`] if it cannot; program counter and registers are as before it.
    #[inline]
    pub fn step(&mut self, sram: &mut SramBytes) -> Result<Executed, CpuFault> {
        let (instruction, _) = self.upcoming(sram)?;
        self.step_decoded(sram, instruction)
    }

    /// Executes the instruction at the program counter, which is this one.
    ///
    /// # Errors
    /// As of [`step`](Self::step).
    #[inline(always)]
    pub(crate) fn step_decoded(
        &mut self,
        sram: &mut SramBytes,
        instruction: Decoded,
    ) -> Result<Executed, CpuFault> {
        let before = self.position;
        if before.slot && instruction.jumps {
            return Err(CpuFault::ReservedInstruction);
        }
        self.position.advance(instruction.jumps);
        let pc = before.pc;
        match self.execute(sram, pc, &instruction) {
            Ok(access) => {
                self.history.executed(1);
                self.retired += 1;
                if self.position.pc != pc.wrapping_add(4) {
                    self.history.turn(self.position.pc, 0);
                }
                Ok(Executed {
                    pc,
                    word: instruction.word,
                    access,
                    taken: self.position.turns(),
                })
            }
            Err(fault) => {
                self.position = before;
                Err(fault)
            }
        }
    }

    /// Where an address leads; `None` where nothing answers.
    #[inline]
    fn place(&self, address: u32) -> Option<Place> {
        let in_scratch = address.wrapping_sub(SCRATCH_BASE) as usize;
        if in_scratch < self.scratch.len() {
            Some(Place::Scratch(in_scratch))
        } else if address < SRAM_MAX_BYTES {
            Some(Place::Sram(address))
        } else if address.wrapping_sub(REGISTERS_BASE) < REGISTERS_BYTES {
            Some(Place::Register(address - REGISTERS_BASE))
        } else if SPILL_WINDOW.contains(&address) {
            Some(Place::Sram(address.wrapping_sub(self.spill_base)))
        } else {
            None
        }
    }

    /// Where the word of an address lies, with an SRAM address wrapped; `None` where nothing
    /// answers.
    pub(crate) fn wrapped(&self, sram: &SramBytes, address: u32) -> Option<Place> {
        Some(match self.place(address)? {
            Place::Sram(address) => Place::Sram(sram.wrap(address)),
            place => place,
        })
    }

    /// Goes on at `pc`, with an empty pipeline.
    pub(crate) fn jump(&mut self, pc: u32) {
        self.position = Position::at(pc);
        self.history.turn(pc, 0);
    }

    /// The address that a load or store accesses.
    #[inline(always)]
    pub(super) fn address(&self, instruction: &Decoded) -> u32 {
        let base = self.gpr[usize::from(instruction.s & 31)];
        base.wrapping_add(instruction.value)
    }

    /// Where a data access leads; `None` where nothing answers.
    ///
    /// Registers take aligned words only (2, C).
    #[inline(always)]
    pub(super) fn data(&self, address: u32, bytes: u8) -> Result<Option<Place>, CpuFault> {
        if address & u32::from(bytes.wrapping_sub(1)) != 0 {
            return Err(CpuFault::Unaligned { address });
        }
        let place = self.place(address);
        Ok(place.filter(|place| bytes == 4 || !matches!(place, Place::Register(_))))
    }

    /// The instruction to execute next, and where it lies in SRAM if it lies there.
    ///
    /// # Errors
    /// [`CpuFault`] if it cannot be fetched.
    #[inline]
    pub(crate) fn upcoming(
        &mut self,
        sram: &SramBytes,
    ) -> Result<(Decoded, Option<u32>), CpuFault> {
        let pc = self.position.pc;
        if let Some(instruction) = self.cache.known(pc) {
            return Ok((*instruction, None));
        }
        if !pc.is_multiple_of(4) {
            return Err(CpuFault::Unaligned { address: pc });
        }
        match self.place(pc) {
            Some(Place::Scratch(at)) => {
                let word = u32::from_be_bytes(load(&self.scratch, at));
                Ok((self.cache.scratch(at, word), None))
            }
            Some(Place::Sram(address)) => {
                let word = u32::from_be_bytes(sram.load(address));
                let address = sram.wrap(address);
                Ok((self.cache.sram(address, word), Some(address)))
            }
            _ => Err(CpuFault::BusError { address: pc }),
        }
    }

    /// Whether the next instruction stands in a delay slot.
    #[inline]
    pub(crate) fn in_slot(&self) -> bool {
        self.position.slot
    }

    /// Where the access of a load or store leads; `None` where nothing answers, and for one
    /// that is not aligned.
    #[inline]
    pub(crate) fn target(&self, instruction: Decoded) -> Option<Place> {
        let address = self.address(&instruction);
        self.data(address, instruction.bytes).unwrap_or(None)
    }

    /// The aligned word, with its address wrapped, that a load or store would touch now;
    /// `None` if that is a register or nothing.
    pub(crate) fn data_word(&self, sram: &SramBytes, word: u32) -> Option<Place> {
        let address = self.gpr[rs(word)].wrapping_add_signed(immediate(word));
        match self.place(address)? {
            Place::Sram(address) => Some(Place::Sram(sram.wrap(address) & !3)),
            Place::Scratch(at) => Some(Place::Scratch(at & !3)),
            Place::Register(_) => None,
        }
    }

    /// The word at a place in memory; 0 for a register.
    pub(crate) fn word_at(&self, sram: &SramBytes, place: Place) -> u32 {
        match place {
            Place::Sram(address) => u32::from_be_bytes(sram.load(address)),
            Place::Scratch(at) => u32::from_be_bytes(load(&self.scratch, at)),
            Place::Register(_) => 0,
        }
    }

    /// Stores the word at a place in memory; nothing for a register.
    pub(crate) fn set_word_at(&mut self, sram: &mut SramBytes, place: Place, value: u32) {
        match place {
            Place::Sram(address) => sram.store(address, value.to_be_bytes()),
            Place::Scratch(at) => self.set_scratch_word(at as u32, value),
            Place::Register(_) => (),
        }
    }

    /// Whether it is at the instruction of a checkpoint, in the same delay slot if any.
    pub(crate) fn is_at(&self, other: &Checkpoint) -> bool {
        self.position == other.position
    }
}
