//! Loads, opens, closes and recovers a card.
//!
//! The states of a card from [`Nic::probe`] on; [`super`] has the picture.

use std::time::Instant;

use host_interface::extension::{self, Extension, Reserved};
use host_interface::image::Image;
use tigon2_chip::Cpu;
use tigon2_chip::registers::Register;

use super::config::SendConsumer;
use super::control::Control;
use super::error::{CardState, FatalReport, FirmwareSaid, NicError};
use super::events::EventLog;
use super::settings::wants_jumbo_buffers;
use super::window::MemoryAccess;
use super::{DropReason, LOOK, Nic, Phase, Ring, bringup};
use crate::transport::Transport;

/// If a card interrupts continuously while its firmware starts, its report is read once in this
/// many interrupts.
const INTERRUPTS_A_LOOK: u32 = 16;

impl<T: Transport> Nic<T> {
    /// Loads a firmware file (`tg2.bin`) and waits until it is operational.
    ///
    /// # Errors
    /// [`NicError::Image`] before the card is touched if the file is not usable;
    /// [`NicError::FirmwareFatal`] with the firmware's own report,
    /// [`NicError::FirmwareSilent`], or what the transport says.
    pub fn load(&mut self, file: &[u8]) -> Result<(), NicError> {
        let image = Image::parse(file)?;
        if self.phase != Phase::Halted {
            bringup::reset(&mut self.transport)?;
            self.phase = Phase::Halted;
        }
        self.forget()?;
        if !bringup::is_halted(&mut self.transport)? {
            let state = self.card_state()?;
            return Err(NicError::NotHalted { state });
        }
        bringup::load(&mut self.transport, &image)?;
        let control = &mut self.control;
        bringup::configure(
            &mut control.transport,
            &control.config,
            control.memory.info_address()?,
            control.station,
        )?;
        bringup::start(&mut self.transport, image.start())?;
        self.phase = Phase::Running;
        self.image = file.to_vec();
        self.own = false;
        let result = self.await_firmware();
        if result.is_err() {
            // Nothing may write to this process's memory unnoticed.
            let _ = bringup::halt(&mut self.transport);
            self.phase = Phase::Halted;
        }
        result
    }

    /// Restarts with empty rings, which the information block describes to the card.
    pub(super) fn forget(&mut self) -> Result<(), NicError> {
        let (send, receive) = (&mut self.send.ring, &mut self.receive.rings);
        send.restart()?;
        receive.restart()?;
        let control = &mut self.control;
        control.memory_access = MemoryAccess::default();
        control.queues.forget();
        control.events = EventLog::default();
        control.command_producer = 0;
        control.last_command = 0;
        control.ours = false;
        control.log.restart();
        control.memory.prepare(&control.config, send, receive)
    }

    pub(super) fn await_firmware(&mut self) -> Result<(), NicError> {
        let start = Instant::now();
        let mut interrupts = 0_u32;
        while !self.events.operational {
            let quiet = !self.wait(LOOK)?;
            interrupts += 1;
            self.take_events()?;
            if self.events.errors > 0 {
                return Err(self.refused());
            }
            // Not by this computer's clock, which would influence the simulated card.
            if quiet || interrupts.is_multiple_of(INTERRUPTS_A_LOOK) {
                self.check_fatal()?;
            }
            if !self.events.operational && start.elapsed() >= self.config.firmware_timeout {
                return Err(NicError::FirmwareSilent {
                    after: self.config.firmware_timeout,
                    state: self.card_state()?,
                });
            }
        }
        self.ours = self.extension(Extension::Magic)? == extension::MAGIC
            && extension::is_known(self.extension(Extension::Version)?);
        self.check_arena()?;
        let by_register = self.ours && self.config.send_consumer == SendConsumer::Register;
        self.send.read_by_register(by_register);
        self.restore_log_levels()
    }

    /// Checks that the firmware has reserved what the configuration asks for.
    fn check_arena(&mut self) -> Result<(), NicError> {
        let asked = self.config.arena;
        if asked == 0 {
            return Ok(());
        }
        let reserved = match self.ours {
            true => self.extension(Extension::Arena)?,
            false => 0,
        };
        if reserved == u32::from(asked) {
            return Ok(());
        }
        Err(NicError::BadSetting {
            what: "KB reserved for extensions",
            value: asked.into(),
            allowed: format!(
                "a multiple of {}, up to {} with 1 MB of memory and firmware that loads extensions",
                Reserved::STEP,
                Reserved::MOST
            ),
        })
    }

    /// Gives the card receive buffers and enables traffic.
    ///
    /// # Errors
    /// [`NicError::WrongState`] if no firmware is running; what the firmware or the
    /// transport says.
    pub fn open(&mut self) -> Result<(), NicError> {
        self.need(Phase::Running)?;
        let jumbo = wants_jumbo_buffers(&self.config);
        let rings = &mut self.receive.rings;
        rings.fill(|ring| jumbo || ring != Ring::Jumbo)?;
        self.publish_buffers(true)?;
        self.clear_statistics()?;
        self.set_stack(true)?;
        self.phase = Phase::Open;
        self.restore_filters()
    }

    /// Stops traffic and ends queue mode. The card keeps the receive buffers of classic mode until
    /// it is loaded again.
    ///
    /// # Errors
    /// [`NicError::WrongState`] if the card is not open; errors of the firmware or the transport.
    pub fn close(&mut self) -> Result<(), NicError> {
        self.need(Phase::Open)?;
        if self.queues.is_open() {
            return self.end_queues();
        }
        self.set_stack(false)?;
        self.phase = Phase::Running;
        Ok(())
    }

    /// Halts the card and returns the transport.
    ///
    /// # Errors
    /// What the transport says.
    pub fn shut_down(self) -> Result<T, NicError> {
        self.control.shut_down()
    }

    /// Resets the card after a failure, loads the same firmware and opens it again if it was open
    /// in classic mode; [`Nic::open_queues`] reopens queues. Frames that the card had are lost and
    /// counted.
    ///
    /// # Errors
    /// [`NicError::WrongState`] if no firmware was ever loaded; errors of loading.
    pub fn recover(&mut self) -> Result<(), NicError> {
        if self.image.is_empty() && !self.own {
            return Err(NicError::WrongState {
                is: "empty",
                needs: "loaded once",
            });
        }
        let was_open = self.phase == Phase::Open && !self.queues.is_open();
        let lost = u64::from(self.send_outstanding());
        self.count_drops(DropReason::LostInReset, lost);
        self.counts.recovery();
        // The last messages of a failed firmware are the most useful. Even if they are nonsense,
        // the card is reset.
        let _ = self.poll_log();
        // Both reset a card that is not halted.
        if self.own {
            self.boot()?;
        } else {
            let file = std::mem::take(&mut self.image);
            let result = self.load(&file);
            self.image = file;
            result?;
        }
        if was_open {
            self.open()?;
        }
        Ok(())
    }
}

impl<T: Transport> Control<T> {
    /// Stops traffic, halts the card and returns the transport. Afterwards the card writes to no
    /// memory; remaining queues receive nothing more.
    ///
    /// # Errors
    /// What the transport says.
    pub fn shut_down(mut self) -> Result<T, NicError> {
        if self.phase == Phase::Open {
            // A card that no longer answers is halted anyway.
            let _ = self.set_stack(false);
        }
        bringup::halt(&mut self.transport)?;
        self.transport.flush()?;
        Ok(self.transport)
    }

    /// The registers that show the state of a card.
    ///
    /// # Errors
    /// What the transport says.
    pub fn card_state(&mut self) -> Result<CardState, NicError> {
        let firmware = self.firmware_said()?;
        Ok(CardState {
            cpu_a_state: self.transport.read(Register::cpu_state(Cpu::A).offset())?,
            cpu_a_pc: self.transport.read(Register::cpu_pc(Cpu::A).offset())?,
            events: self.transport.read(Register::event(Cpu::A).offset())?,
            firmware,
            emulator: self.transport.counts()?,
        })
    }

    /// The state that the firmware reports. A file without this project's seal is another firmware.
    fn firmware_said(&mut self) -> Result<FirmwareSaid, NicError> {
        if self.extension(Extension::Magic)? == extension::MAGIC {
            return Ok(FirmwareSaid::State(self.extension(Extension::State)?));
        }
        Ok(match Image::parse(&self.image) {
            Ok(image) if !image.is_sealed() => FirmwareSaid::Foreign {
                version: image.version(),
                operational: self.events.operational,
            },
            _ => FirmwareSaid::NotSignedIn,
        })
    }

    /// Checks whether the firmware has reported a fatal error.
    ///
    /// # Errors
    /// [`NicError::FirmwareFatal`] if it has; what the transport says.
    pub fn check_fatal(&mut self) -> Result<(), NicError> {
        // The firmware writes the magic word when it is ready, and may fail before. Gencom was
        // cleared before the start, so a state of FATAL with a code is always its own report. Other
        // firmware never writes here.
        if self.extension(Extension::State)? != extension::State::Fatal.number() {
            return Ok(());
        }
        let report = FatalReport {
            code: self.extension(Extension::FatalCode)?,
            argument: self.extension(Extension::FatalArgument)?,
            cpu_pc: self.extension(Extension::FatalCpuPc)?,
        };
        Err(NicError::FirmwareFatal(report))
    }

    /// The meaning of the latest error event. Firmware that has stopped wrote its report before the
    /// event, and the report says more.
    pub(super) fn refused(&mut self) -> NicError {
        if let Err(report) = self.check_fatal() {
            return report;
        }
        NicError::FirmwareRefused {
            reason: self.events.last_error.unwrap_or("unknown error"),
            command: self.last_command,
        }
    }
}
