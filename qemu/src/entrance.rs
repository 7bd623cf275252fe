//! Admits vfio-user clients only after the card is switched on.
//!
//! A client can connect as soon as the socket exists. But QEMU resets the machine once more when
//! it has been created completely: earlier work of a client would be lost, and a CPU that the
//! client had halted would boot. So the client's first answer is delayed until then.

use crate::host::Host;
use crate::machine::Machine;
use crate::server::{Service, SharedEeprom, Socket, save};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A machine and its socket.
pub struct Entrance<H: Host> {
    machine: Arc<Machine<H>>,
    eeprom: SharedEeprom,
    state: Mutex<State<H>>,
}

/// How far it is.
enum State<H: Host> {
    /// There is no socket, or not any more.
    None,
    /// The machine is being made.
    Closed(Socket),
    /// It is made, and opens the next time that it is switched on.
    Ready(Socket),
    Open(Service<H>),
}

impl<H: Host + 'static> Entrance<H> {
    /// Closed.
    pub fn new(machine: Arc<Machine<H>>, eeprom: SharedEeprom, socket: Option<Socket>) -> Self {
        Entrance {
            machine,
            eeprom,
            state: Mutex::new(socket.map_or(State::None, State::Closed)),
        }
    }

    /// All of the machine is made.
    pub fn begin(&self) {
        self.change(|state| {
            Ok(match state {
                State::Closed(socket) => State::Ready(socket),
                other => other,
            })
        });
    }

    /// The machine is switched on, or reset.
    pub fn power_on(&self) {
        self.machine.power_on();
        self.change(|state| match state {
            State::Ready(socket) => {
                let service = socket.serve(self.machine.clone(), self.eeprom.clone())?;
                Ok(State::Open(service))
            }
            other => Ok(other),
        });
    }

    /// The machine ends: clients are no longer served, and the EEPROM is saved.
    pub fn end(&self) {
        self.change(|state| {
            if let State::Open(service) = state {
                service.stop()?;
            }
            Ok(State::None)
        });
        if !self.machine.is_dead() {
            save(&self.machine, &self.eeprom);
        }
        self.machine.lines().finish();
    }

    /// Changes from one state to the next; a failure is reported and ends serving.
    fn change(&self, next: impl FnOnce(State<H>) -> io::Result<State<H>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match next(std::mem::replace(&mut *state, State::None)) {
            Ok(now) => *state = now,
            Err(error) => eprintln!("tigon2: vfio-user: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{self, Options};
    use crate::testing::Notes;
    use std::time::Duration;
    use tigon2_chip::bits::CpuState;
    use tigon2_chip::registers::Register;
    use vfio_user_nic::message::region;

    /// What a client does before the machine's first reset would be lost in it.
    #[test]
    fn a_client_waits_until_the_card_is_switched_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("card");
        let board = tigon2_model::Board::default();
        let notes = Notes::new(&board);
        let (card, eeprom) = setup::card(board, &Options::default()).expect("good options");
        let socket = Socket::bind(&path).expect("a socket");
        let machine = Arc::new(Machine::new(notes, card, socket.client()));
        let eeprom = Arc::new(Mutex::new(eeprom));
        let entrance = Entrance::new(machine.clone(), eeprom, Some(socket));
        // Resets while the machine is made open nothing.
        entrance.power_on();
        entrance.begin();
        let patience = Duration::from_secs(10);
        std::thread::scope(|scope| {
            let halted = scope.spawn(|| {
                let mut client = vfio_user_nic::Client::connect(&path, patience).expect("a card");
                let state = u64::from(Register::CpuAState.offset());
                let halt = CpuState::HALTED.to_le_bytes();
                let written = client.region_write(region::BAR0, state, &halt);
                written.expect("it is written");
            });
            std::thread::sleep(Duration::from_millis(50));
            assert!(!halted.is_finished(), "nobody is served yet");
            entrance.power_on();
            // As QEMU does when it has nothing to do, and at its end.
            machine.host().unlock();
            halted.join().expect("it is served");
        });
        entrance.end();
        assert!(!path.exists());
    }
}
