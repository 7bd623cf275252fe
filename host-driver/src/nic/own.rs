//! The card's own firmware: its boot code starts it, and the driver takes over.
//!
//! ```text
//!  driver: reset the chip ──> boot code: image from the EEPROM ──> firmware: AwaitingHost
//!  driver: gencom, information block, State = Boot ──> firmware: operational
//!  driver: image on trial? halt for a moment, confirm it in the EEPROM, let it go on
//! ```
//!
//! An image on trial is read back and its signature checked before it starts, because a confirmed
//! image starts by itself from then on. With a required key every image is checked.

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

/// Timeout of the boot code: it takes about 1.3 s for an image of 50 KB on a real card.
const BOOT_TIMEOUT: Duration = Duration::from_secs(30);

/// The firmware that the boot code has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFirmware {
    /// Its slot.
    pub slot: Slot,
    /// Whether it was on trial and has now been confirmed.
    pub confirmed_now: bool,
}

/// The boot code's report of why it started nothing.
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
    /// Access to the card's EEPROM, to inspect or change it. This halts the card, so it must be
    /// loaded or booted again afterwards.
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

    /// Checks the signature of the image that would start, if it is on trial or a key is required;
    /// returns its slot if it was checked.
    fn check_own(&mut self, trusted: TrustedKey) -> Result<Option<Slot>, NicError> {
        let required = self.config.required_key.is_some();
        let mut flasher = self.eeprom(trusted)?;
        let Some(record) = flasher.record()? else {
            return Ok(None);
        };
        // Reading an image takes a while.
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

    /// Waits until firmware requests its host.
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

    /// Confirms the running image. The CPUs are halted while the EEPROM is written.
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
    /// Makes the card boot from its EEPROM and configures the firmware that starts. Confirms an
    /// image on trial once it is operational.
    ///
    /// # Errors
    /// [`NicError::NotBooted`] with the boot code's own report, [`NicError::Flash`] if the image's
    /// signature is wrong, or as [`Nic::load`].
    pub fn boot(&mut self) -> Result<OwnFirmware, NicError> {
        if self.phase != Phase::Halted {
            bringup::reset(&mut self.transport)?;
            self.phase = Phase::Halted;
        }
        let trusted = match self.config.required_key {
            Some(key) => key,
            None => TrustedKey::from_environment().map_err(FlashError::from)?,
        };
        let checked = self.check_own(trusted)?;
        self.forget()?;
        let result = self.boot_and_configure(trusted, checked);
        if result.is_err() {
            // Nothing may write to this process's memory unnoticed.
            let _ = bringup::halt(&mut self.transport);
            self.phase = Phase::Halted;
        }
        result
    }

    fn boot_and_configure(
        &mut self,
        trusted: TrustedKey,
        checked: Option<Slot>,
    ) -> Result<OwnFirmware, NicError> {
        // Words of an earlier boot must not be taken for this one's.
        for word in [Extension::BootSource, Extension::State] {
            self.transport.write(word.bar_offset(), 0)?;
        }
        bringup::restart(&mut self.transport)?;
        let source = self.await_boot()?;
        let slot = Slot::from_index(source.slot().into()).unwrap_or(Slot::Zero);
        let must_be_checked = source.trial() || self.config.required_key.is_some();
        if must_be_checked && checked != Some(slot) {
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
