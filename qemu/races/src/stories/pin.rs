//! The interrupt pin and a client with an eventfd, which acts as a driver: it takes the work,
//! lowers the pin and unmasks. Firmware adds work at any time, and all of it must be taken.

use crate::glue::interrupt::Interrupts;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vfio_user_nic::message::{IrqSet, irq, irq_set_flags as f};

const ITEMS: u32 = 3;
/// Looks for a signal in a row that find nothing, with nothing else going on any more.
const LOOKS: u32 = 50;

fn set(index_flags: u32) -> IrqSet {
    IrqSet {
        argsz: 20,
        flags: index_flags,
        index: irq::INTX,
        start: 0,
        count: 1,
    }
}

fn signalled(fd: &OwnedFd) -> bool {
    rustix::io::read(fd, &mut [0_u8; 8]).is_ok()
}

pub fn all_work_is_taken() {
    let pin = Interrupts::new(Duration::from_nanos(1));
    let theirs = eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd");
    let ours = rustix::io::dup(&theirs).expect("a descriptor");
    let connect = set(f::DATA_EVENTFD | f::ACTION_TRIGGER);
    pin.set(&connect, 1, &[], vec![theirs])
        .expect("it is connected");
    let work = Arc::new(Mutex::new(0));
    let finished = Arc::new(AtomicBool::new(false));
    let firmware = {
        let (pin, work, finished) = (pin.clone(), work.clone(), finished.clone());
        thread::spawn(move || {
            for _ in 0..ITEMS {
                // As the machine does: under its lock.
                let mut work = work.lock().expect("no panic");
                *work += 1;
                pin.set_level(true);
            }
            finished.store(true, Ordering::Relaxed);
        })
    };
    let (mut taken, mut looks) = (0, 0);
    while taken < ITEMS {
        // The server's thread.
        pin.recheck(Instant::now() + Duration::from_secs(1));
        if signalled(&ours) {
            looks = 0;
            {
                let mut work = work.lock().expect("no panic");
                taken += std::mem::take(&mut *work);
                pin.set_level(false);
            }
            let unmask = set(f::DATA_NONE | f::ACTION_UNMASK);
            pin.set(&unmask, 1, &[], Vec::new())
                .expect("it is unmasked");
        } else {
            looks += u32::from(finished.load(Ordering::Relaxed));
            assert!(looks < LOOKS, "{taken} of {ITEMS}: a signal is lost");
            thread::yield_now();
        }
    }
    firmware.join().expect("no panic");
}
