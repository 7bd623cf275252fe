//! The card's own firmware: started by its boot code, taken over by the driver.
//!
//! ```text
//!  driver: reset the chip ──> boot code: image from the EEPROM ──> firmware: AwaitingHost
//!  driver: gencom, information block, State = Boot ──> firmware: operational
//!  driver: image on trial? halt for a moment, confirm it in the EEPROM, let it go on
//! ```
//!
//! An image on trial is read back and its signature judged before it is started: what is
//! confirmed starts by itself from then on.

use std::time::{Duration, Instant};

use boot_slots::select::Reason;
use boot_slots::{BoardId, Slot};
use host_interface::extension::{BootReport, BootSource, Extension, State};
use tigon2_chip::Cpu;
use tigon2_chip::bits::CpuState;
use tigon2_chip::registers::Register;

use super::error::NicError;
use super::{LOOK, Nic, Phase, bringup};
use crate::eeprom::EepromError;
use crate::flash::signature::TrustedKey;
use crate::flash::{CardEeprom, FlashError, Flasher};
use crate::transport::Transport;

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

impl<T: Transport> Nic<T> {
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

    /// Lets the card boot from its EEPROM and configures the firmware that comes up. An
    /// image on trial is confirmed once it is operational.
    ///
    /// # Errors
    /// [`NicError::NotBooted`] with the boot code's own report, [`NicError::Flash`] if an
    /// image on trial is not signed as it should be, or as [`Nic::load`].
    pub fn boot(&mut self) -> Result<OwnFirmware, NicError> {
        if self.phase != Phase::Halted {
            bringup::reset(&mut self.transport)?;
            self.phase = Phase::Halted;
        }
        let trusted = TrustedKey::from_environment().map_err(FlashError::from)?;
        self.judge_trial(trusted.clone())?;
        self.forget();
        self.memory.prepare(&self.config)?;
        let result = self.boot_and_configure(trusted);
        if result.is_err() {
            // Nothing may write to this process's memory behind its back.
            let _ = bringup::halt(&mut self.transport);
            self.phase = Phase::Halted;
        }
        result
    }

    /// The image that would be started on trial must be signed.
    fn judge_trial(&mut self, trusted: TrustedKey) -> Result<(), NicError> {
        let mut flasher = self.eeprom(trusted)?;
        let Some(record) = flasher.record()? else {
            return Ok(());
        };
        let state = record.slot(record.preferred);
        if !state.confirmed && state.trials > 0 {
            flasher.verify(record.preferred, &mut |_, _, _| {})?;
        }
        Ok(())
    }

    fn boot_and_configure(&mut self, trusted: TrustedKey) -> Result<OwnFirmware, NicError> {
        // What is there from an earlier boot must not be taken for this one's.
        for word in [Extension::BootSource, Extension::State] {
            self.transport.write(word.bar_offset(), 0)?;
        }
        bringup::restart(&mut self.transport)?;
        let source = self.await_boot()?;
        bringup::configure_own(
            &mut self.transport,
            &self.config,
            &self.memory,
            self.station,
        )?;
        let go = Extension::State.bar_offset();
        self.transport.write(go, State::Boot.number())?;
        self.transport.flush()?;
        self.phase = Phase::Running;
        self.image.clear();
        self.own = true;
        self.await_firmware()?;
        let slot = Slot::from_index(source.slot().into()).unwrap_or(Slot::Zero);
        if source.trial() {
            self.confirm(slot, trusted)?;
        }
        Ok(OwnFirmware {
            slot,
            confirmed_now: source.trial(),
        })
    }

    /// Waits until firmware asks for its host.
    fn await_boot(&mut self) -> Result<BootSource, NicError> {
        let start = Instant::now();
        let state = Register::cpu_state(Cpu::A).offset();
        loop {
            self.transport.wait_interrupt(LOOK)?;
            self.transport.unmask_interrupt()?;
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
                return Err(NicError::NotBooted { why, prom_failed });
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
