//! Admits vfio-user clients only when QEMU is ready for them.
//!
//! A client can connect as soon as the socket exists. But QEMU resets the machine once more when
//! it has been created completely: earlier work of a client would be lost, and a CPU that the
//! client had halted would boot. After that reset QEMU still prepares itself; its handlers for
//! signals come last. A client that was served before them could have its QEMU told to end, and
//! QEMU would be killed: no EEPROM saved, the socket's file left behind. So the client's first
//! answer is delayed until QEMU's main loop runs.

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
    /// It is made, but not reset since.
    Made(Socket),
    /// It is reset, and opens when the main loop runs.
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
                State::Closed(socket) => State::Made(socket),
                other => other,
            })
        });
    }

    /// The machine is switched on, or reset.
    pub fn power_on(&self) {
        self.machine.power_on();
        self.change(|state| {
            Ok(match state {
                State::Made(socket) => {
                    self.machine.host().call_errands();
                    State::Ready(socket)
                }
                other => other,
            })
        });
    }

    /// QEMU's main loop runs the errands that were called: from the first ones on, clients
    /// are served.
    pub fn errands(&self) {
        if !self.machine.is_dead() {
            self.change(|state| match state {
                State::Ready(socket) => {
                    let service = socket.serve(self.machine.clone(), self.eeprom.clone())?;
                    Ok(State::Open(service))
                }
                other => Ok(other),
            });
        }
        self.machine.deliver();
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

    /// What a client does before the machine's first reset would be lost in it, and before
    /// the main loop runs QEMU cannot end tidily.
    #[test]
    fn a_client_waits_until_the_main_loop_runs() {
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
        assert!(!machine.host().errands_called(), "nothing is to be done");
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
            let nobody_is_served = || {
                std::thread::sleep(Duration::from_millis(50));
                assert!(!halted.is_finished(), "nobody is served yet");
            };
            // The main loop may run for another reason.
            entrance.errands();
            nobody_is_served();
            entrance.power_on();
            assert!(machine.host().errands_called(), "the main loop is to open");
            nobody_is_served();
            entrance.errands();
            // As QEMU does when it has nothing to do, and at its end.
            machine.host().unlock();
            halted.join().expect("it is served");
        });
        entrance.end();
        assert!(!path.exists());
    }
}
