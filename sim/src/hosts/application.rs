//! Selects the server that runs on a host.

use super::datagrams::Datagrams;
use super::kernel::{Effects, Kernel};
use super::web::Web;

/// The server of a host.
pub enum Application {
    /// Files over TCP.
    Web(Box<Web>),
    /// Datagrams.
    Datagrams(Datagrams),
}

impl Application {
    /// The protocols' part of a received frame, on a CPU.
    pub fn packet(&mut self, kernel: &mut Kernel, cpu: usize, frame: Vec<u8>) -> Effects {
        match self {
            Application::Web(web) => web.packet(kernel, cpu, frame),
            Application::Datagrams(datagrams) => datagrams.packet(kernel, cpu, &frame),
        }
    }

    /// Begins a thread's next piece of work on a CPU and charges it; None if it sleeps.
    pub fn begin(&mut self, kernel: &mut Kernel, cpu: usize, thread: usize) -> Option<Effects> {
        match self {
            Application::Web(web) => web.begin(kernel, cpu, thread),
            Application::Datagrams(datagrams) => datagrams.begin(kernel, cpu, thread),
        }
    }

    /// A thread's piece of work is done.
    pub fn finish(&mut self, thread: usize) {
        match self {
            Application::Web(web) => web.finish(thread),
            Application::Datagrams(datagrams) => datagrams.finish(thread),
        }
    }

    /// Whether it has more than it can take, so that frames should stay on the card: those
    /// of a queue, or of any.
    pub fn is_inhibited(&self, queue: Option<usize>) -> bool {
        match self {
            Application::Web(_) => false,
            Application::Datagrams(datagrams) => datagrams.is_inhibited(queue),
        }
    }
}
