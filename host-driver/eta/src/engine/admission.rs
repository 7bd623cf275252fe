//! Applications come, register memory of their own, and go.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use dti::bell::Doorbell;
use dti::control::{self, Answer, Attachment};
use dti::layout::{Descriptor, Operation, Sizes, Status};
use dti::mapped::Mapping;
use dti::ring::RingError;
use host_driver::stack::Wire;
use host_driver::stack::flows::Owner;
use host_driver::stack::flows::in_place::Payload as _;

use super::{Application, Engine, EngineError};
use crate::queues::Queues;
use crate::sockets::{Role, Socket};

/// How often the wire is asked whether it is there.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// Registrations whose events have no place: who posts more is not going to look at them.
const MOST_REGISTRATIONS: usize = 64;

impl<W: Wire> Engine<W> {
    /// Attaches an application of the same process, with queues of the usual sizes.
    ///
    /// # Errors
    /// As [`Engine::attach_with`].
    pub fn attach(&mut self) -> Result<Attachment, EngineError> {
        self.attach_with(Sizes::default())
    }

    /// Attaches an application of the same process.
    ///
    /// # Errors
    /// [`EngineError::System`] without memory or descriptors, [`EngineError::Full`],
    /// [`EngineError::Sizes`].
    pub fn attach_with(&mut self, sizes: Sizes) -> Result<Attachment, EngineError> {
        let (near, far) = control::pair()?;
        let number = self.admit(near, sizes)?;
        let engine = self.settings.number;
        let Some(application) = self.application(number) else {
            return Err(EngineError::Full(0));
        };
        Ok(Attachment {
            memory: application.queues.memory.file().try_clone_to_owned()?,
            anonymous: application.queues.anonymous.file().try_clone_to_owned()?,
            doorbell: application.doorbell.share()?,
            control: far,
            sizes,
            engine,
        })
    }

    /// Makes an application's memory files and doorbell.
    fn admit(&mut self, control: OwnedFd, sizes: Sizes) -> Result<usize, EngineError> {
        let peer = control::peer(&control);
        let quota = self.quotas.of(peer.user);
        if !sizes.within(&quota.sizes) {
            return Err(EngineError::Sizes(sizes));
        }
        let living = self.applications.iter().flatten();
        let (all, own) = living.fold((0, 0), |(all, own), one| {
            (all + 1, own + usize::from(one.peer.user == peer.user))
        });
        if all >= self.settings.applications || own >= quota.attachments {
            return Err(EngineError::Full(all));
        }
        let memory = Mapping::create(sizes.file_words()).map_err(std::io::Error::from)?;
        let anonymous = Mapping::create(sizes.anonymous_words()).map_err(std::io::Error::from)?;
        let doorbell = Doorbell::create()?;
        let free = self.applications.iter().position(Option::is_none);
        let number = free.unwrap_or(self.applications.len());
        self.door.enter(number, control.as_fd(), &doorbell)?;
        let application = Application {
            queues: Queues::new(memory, anonymous, sizes),
            sockets: HashMap::new(),
            chosen: (sizes.sockets..sizes.handles()).rev().collect(),
            buffers: 0,
            quota,
            registrations: VecDeque::new(),
            peer,
            control,
            doorbell,
        };
        match self.applications.get_mut(number) {
            Some(place) => *place = Some(application),
            None => self.applications.push(Some(application)),
        }
        self.statistics.attached += 1;
        Ok(number)
    }

    /// Drops an application that wrote nonsense.
    pub(super) fn expel(&mut self, number: usize) {
        self.statistics.expelled += 1;
        self.reclaim(number);
    }

    /// Takes back all that an application had; its connections are reset.
    fn reclaim(&mut self, number: usize) {
        let Some(application) = self.applications.get_mut(number).and_then(Option::take) else {
            return;
        };
        let Application {
            control, doorbell, ..
        } = &application;
        self.door.leave(control.as_fd(), doorbell);
        let mark = self.wire.queued();
        let memories = application.queues.regions.memories();
        let cards = memories.filter_map(|memory| memory.card().cloned());
        self.leaving.extend(cards.map(|card| (mark, card)));
        for (handle, socket) in application.sockets {
            let owner = Owner {
                application: number as u32,
                socket: handle,
            };
            self.release(owner, socket);
        }
        self.statistics.ended += 1;
    }

    /// Takes memory away from the wire that it reads no more.
    pub(super) fn let_go(&mut self) -> Result<(), EngineError> {
        let returned = self.wire.returned();
        while let Some(found) = self.leaving.iter().position(|(mark, _)| *mark <= returned) {
            let (_, memory) = self.leaving.swap_remove(found);
            self.wire.unmap(&memory)?;
        }
        Ok(())
    }

    /// Takes back what a socket had.
    pub(super) fn release(&mut self, owner: Owner, socket: Socket) {
        match socket.role {
            Role::Fresh => {}
            Role::Listening(_) => {
                if let Some(port) = socket.port {
                    self.stack.unlisten(port, owner);
                }
            }
            Role::Connected(connection) => self.stack.abandon(connection.id),
        }
        if let Some(port) = socket.port {
            self.stack.ports().unbind(port);
        }
    }

    /// Looks who comes, who wants something and who has gone.
    pub(super) fn look(&mut self, now: Instant) -> Result<(), EngineError> {
        self.looked = now;
        self.statistics.calls += 1;
        if now.saturating_duration_since(self.checked) >= CHECK_PERIOD {
            self.checked = now;
            self.wire.check()?;
        }
        for number in self.door.look()? {
            self.hear(number);
        }
        for (caller, sizes) in self.door.callers()? {
            let file = caller.try_clone()?;
            let engine = self.settings.number;
            let refuse = |answer| control::answer(file.as_fd(), answer, (engine, sizes), &[]);
            match self.admit(caller, sizes) {
                Ok(number) => {
                    if let Some(application) = self.application(number) {
                        let files = [
                            application.queues.memory.file(),
                            application.queues.anonymous.file(),
                            application.doorbell.as_fd(),
                        ];
                        let granted = (engine, sizes);
                        control::answer(file.as_fd(), Answer::Attached, granted, &files);
                    }
                }
                Err(EngineError::Full(_)) => refuse(Answer::Full),
                Err(EngineError::Sizes(_)) => refuse(Answer::Sizes),
                Err(_) => refuse(Answer::NoMemory),
            }
        }
        Ok(())
    }

    /// Takes what an application says at its control socket.
    fn hear(&mut self, number: usize) {
        loop {
            self.statistics.calls += 1;
            let Some(Some(application)) = self.applications.get_mut(number) else {
                return;
            };
            match control::hear(application.control.as_fd()) {
                control::Heard::Nothing => return,
                control::Heard::End => return self.reclaim(number),
                control::Heard::Registration(work, file)
                    if application.registrations.len() < MOST_REGISTRATIONS =>
                {
                    application.registrations.push_back((work, file));
                }
                _ => return self.expel(number),
            }
        }
    }

    /// Registers an application's own files, as far as there is room for the events; true if there
    /// were any.
    pub(super) fn register_files(&mut self, number: usize) -> Result<bool, RingError> {
        let Some(application) = self.application(number) else {
            return Ok(false);
        };
        let mut any = false;
        while let Some((work, _)) = application.registrations.front() {
            let Some(work) = application.queues.admit(*work)? else {
                break;
            };
            let Some((_, file)) = application.registrations.pop_front() else {
                break;
            };
            any = true;
            match register(application, &work, file) {
                Ok(()) => application.queues.complete(&work, Status::Ok, 0, 0)?,
                Err(status) => application.queues.refuse(&work, status)?,
            }
        }
        Ok(any)
    }
}

fn register(application: &mut Application, work: &Descriptor, file: OwnedFd) -> Result<(), Status> {
    if Operation::from_number(work.operation) != Some(Operation::Register) {
        return Err(Status::Invalid);
    }
    let regions = &mut application.queues.regions;
    if regions.used().0 >= application.quota.regions {
        return Err(Status::Quota);
    }
    // A file that is not sealed, or no memory file.
    let file = Mapping::open_foreign(file).map_err(|_| Status::Protection)?;
    regions.register_file(work, file, application.quota.files)
}
