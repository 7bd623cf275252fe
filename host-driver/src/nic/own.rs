//! The card's own firmware: started by its boot code, taken over by the driver.
//!
//! ```text
//!  driver: reset the chip ──> boot code: image from the EEPROM ──> firmware: AwaitingHost
//!  driver: gencom, information block, State = Boot ──> firmware: operational
//!  driver: image on trial? halt for a moment, confirm it in the EEPROM, let it go on
//! ```
//!
//! An image on trial is read back and its signature judged before it is started: what is
//! confirmed starts by itself from then on. With a required key every image is judged.

use std::time::{Duration, Instant};

use boot_slots::select::Reason;
use boot_slots::{BoardId, Slot, SlotState};
use host_interface::extension::{BootReport, BootSource, Extension, State};
use tigon2_chip::Cpu;
use tigon2_chip::bits::CpuState;
use tigon2_chip::registers::Register;

use super::control::Control;
use super::error::NicError;
use super::{LOOK, Nic, Phase, bringup};
use crate::eeprom::EepromError;
use crate::flash::signature::TrustedKey;
use crate::flash::{CardEeprom, FlashError, Flasher};
use crate::transport::{Transport, Vector};

/// How long the boot code may take: about 1.3 s for an image of 50 KB on a real card.
const BOOT_TIMEOUT: Duration = Duration::from_secs(30);

/// What the boot code has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFirmware {
    /// The slot that it is from.
    pub slot: Slot,
    /// It was on trial and has been confirmed now.
    pub confirmed_now: bool,
}

/// What the boot code says of a card that it has not started.
pub(super) fn report_text(word: u32) -> String {
    let Some(report) = BootReport::from_word(word) else {
        return "it has left no report".to_owned();
    };
    if report.blank() {
        return "the EEPROM holds no firmware".to_owned();
    }
    let reason = |number: u8| {
        let reason = Reason::ALL.get(usize::from(number));
        reason.map_or("unknown reason", |reason| reason.text())
    };
    if (report.slot_0(), report.slot_1()) == (0, 0) {
        return "there is no valid boot record".to_owned();
    }
    format!(
        "slot 0: {}; slot 1: {}",
        reason(report.slot_0()),
        reason(report.slot_1())
    )
}

impl<T: Transport> Control<T> {
    /// The card's EEPROM, to look at it or to change it. The card is halted for that, so
    /// it must be loaded or booted again afterwards.
    ///
    /// # Errors
    /// [`FlashError`] if it does not answer or is too small.
    pub fn flasher(
        &mut self,
        trusted: TrustedKey,
    ) -> Result<Flasher<CardEeprom<'_, T>>, FlashError> {
        let storage = |error: EepromError| FlashError::Storage(error.to_string());
        if self.phase != Phase::Halted {
            let halted = bringup::halt(&mut self.transport);
            halted.map_err(|error| FlashError::Storage(error.to_string()))?;
            self.phase = Phase::Halted;
        }
        self.eeprom(trusted).map_err(|error| match error {
            NicError::Eeprom(error) => storage(error),
            NicError::Flash(error) => error,
            other => FlashError::Storage(other.to_string()),
        })
    }

    fn eeprom(&mut self, trusted: TrustedKey) -> Result<Flasher<CardEeprom<'_, T>>, NicError> {
        let board = BoardId {
            vendor: self.identity.vendor,
            device: self.identity.device,
        };
        let (storage, bytes) = CardEeprom::new(&mut self.transport)?;
        Ok(Flasher::new(storage, bytes, board, trusted)?)
    }

    /// The image that would be started must be signed, if it is on trial or a key is
    /// required; returns the slot if one was judged.
    fn judge_own(&mut self, trusted: TrustedKey) -> Result<Option<Slot>, NicError> {
        let required = self.config.required_key.is_some();
        let mut flasher = self.eeprom(trusted)?;
        let Some(record) = flasher.record()? else {
            return Ok(None);
        };
        // To read an image takes its time.
        if !required && !record.slots.iter().any(SlotState::is_on_trial) {
            return Ok(None);
        }
        let Some(slot) = flasher.started()? else {
            return Ok(None);
        };
        if !required && !record.slot(slot).is_on_trial() {
            return Ok(None);
        }
        flasher.verify(slot, &mut |_, _, _| {})?;
        Ok(Some(slot))
    }

    /// Waits until firmware asks for its host.
    fn await_boot(&mut self) -> Result<BootSource, NicError> {
        let start = Instant::now();
        let state = Register::cpu_state(Cpu::A).offset();
        loop {
            self.transport.wait(Vector::INTERRUPT, LOOK)?;
            self.transport.unmask(Vector::INTERRUPT)?;
            let source = BootSource::from_word(self.extension(Extension::BootSource)?);
            if let Some(source) = source
                && self.extension(Extension::State)? == State::AwaitingHost.number()
            {
                return Ok(source);
            }
            let now = CpuState::from_bits(self.transport.read(state)?);
            let late = start.elapsed() >= BOOT_TIMEOUT;
            if now.halt() || late {
                let report = self.extension(Extension::BootReport)?;
                let why = match source {
                    Some(_) => "its firmware does not ask for its host".to_owned(),
                    None => report_text(report),
                };
                let prom_failed = now.rom_failed();
                let state = self.card_state()?;
                return Err(NicError::NotBooted {
                    why,
                    prom_failed,
                    state,
                });
            }
        }
    }

    /// Confirms the image that runs. Its CPUs stand still while the EEPROM is written.
    fn confirm(&mut self, slot: Slot, trusted: TrustedKey) -> Result<(), NicError> {
        let states = [Cpu::A, Cpu::B].map(|cpu| Register::cpu_state(cpu).offset());
        let mut before = [0; 2];
        for (state, before) in states.into_iter().zip(&mut before) {
            *before = self.transport.read(state)?;
            let halted = CpuState::from_bits(*before).with_halt(true);
            self.transport.write(state, halted.into_bits())?;
        }
        let confirmed = self
            .eeprom(trusted)
            .and_then(|mut flasher| Ok(flasher.confirm(slot)?));
        for (state, before) in states.into_iter().zip(before) {
            self.transport.write(state, before)?;
        }
        self.transport.flush()?;
        confirmed
    }
}

impl<T: Transport> Nic<T> {
    /// Lets the card boot from its EEPROM and configures the firmware that comes up. An
    /// image on trial is confirmed once it is operational.
    ///
    /// # Errors
    /// [`NicError::NotBooted`] with the boot code's own report, [`NicError::Flash`] if the
    /// image is not signed as it should be, or as [`Nic::load`].
    pub fn boot(&mut self) -> Result<OwnFirmware, NicError> {
        if self.phase != Phase::Halted {
            bringup::reset(&mut self.transport)?;
            self.phase = Phase::Halted;
        }
        let trusted = match self.config.required_key {
            Some(key) => key,
            None => TrustedKey::from_environment().map_err(FlashError::from)?,
        };
        let judged = self.judge_own(trusted)?;
        self.forget()?;
        let result = self.boot_and_configure(trusted, judged);
        if result.is_err() {
            // Nothing may write to this process's memory behind its back.
            let _ = bringup::halt(&mut self.transport);
            self.phase = Phase::Halted;
        }
        result
    }

    fn boot_and_configure(
        &mut self,
        trusted: TrustedKey,
        judged: Option<Slot>,
    ) -> Result<OwnFirmware, NicError> {
        // What is there from an earlier boot must not be taken for this one's.
        for word in [Extension::BootSource, Extension::State] {
            self.transport.write(word.bar_offset(), 0)?;
        }
        bringup::restart(&mut self.transport)?;
        let source = self.await_boot()?;
        let slot = Slot::from_index(source.slot().into()).unwrap_or(Slot::Zero);
        let must_be_judged = source.trial() || self.config.required_key.is_some();
        if must_be_judged && judged != Some(slot) {
            let why = "the card has started it, and its signature was not judged".to_owned();
            return Err(FlashError::Slot { slot, why }.into());
        }
        let control = &mut self.control;
        bringup::configure_own(
            &mut control.transport,
            &control.config,
            control.memory.info_address()?,
            control.station,
        )?;
        let go = Extension::State.bar_offset();
        self.transport.write(go, State::Boot.number())?;
        self.transport.flush()?;
        self.phase = Phase::Running;
        self.image.clear();
        self.own = true;
        self.await_firmware()?;
        if source.trial() {
            self.confirm(slot, trusted)?;
        }
        Ok(OwnFirmware {
            slot,
            confirmed_now: source.trial(),
        })
    }
}
