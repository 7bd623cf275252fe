//! A thread that works until it is stopped.

use anyhow::{Context, Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running worker; dropping it ends it.
#[derive(Debug)]
pub struct Worker<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<T>>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts `work`, which looks at the flag and returns once it is set.
    pub fn start(work: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static) -> Worker<T> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        Worker {
            stop,
            thread: Some(std::thread::spawn(move || work(&seen))),
        }
    }
}

impl<T> Worker<T> {
    /// Whether it has ended, by itself or because it was told to.
    pub fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it and gives what it returned.
    ///
    /// # Errors
    /// Its own, that it panicked, or that it was joined before.
    pub fn join(&mut self) -> Result<T> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it has been joined before")?;
        thread.join().map_err(|_| anyhow!("a thread panicked"))?
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // The command is failing already; its error is the one to show.
            let _ = self.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until_stopped(stop: &AtomicBool) -> Result<u32> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(7)
    }

    #[test]
    fn it_works_until_it_is_joined() {
        let mut worker = Worker::start(until_stopped);
        assert!(!worker.ended());
        assert_eq!(worker.join().unwrap(), 7);
        assert!(worker.ended());
        assert!(worker.join().is_err());
    }

    #[test]
    fn dropping_it_ends_it() {
        let (ended, end) = std::sync::mpsc::channel();
        drop(Worker::start(move |stop| {
            until_stopped(stop)?;
            Ok(ended.send(())?)
        }));
        assert!(end.try_recv().is_ok());
    }

    #[test]
    fn a_panic_is_an_error() {
        let mut worker = Worker::<()>::start(|_| panic!("as this test wants"));
        assert_eq!(worker.join().unwrap_err().to_string(), "a thread panicked");
    }
}
