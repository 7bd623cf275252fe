//! Wakes the thread that performs DMA which has to wait for the client ([`crate::waiting`]).

use std::sync::{Condvar, Mutex, PoisonError};

/// Wakes the thread.
#[derive(Debug, Default)]
pub struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: bool,
    ended: bool,
}

impl Bell {
    /// A transfer waits.
    pub fn ring(&self) {
        self.change(|state| state.rung = true);
    }

    /// There will be none any more.
    pub fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Waits for a transfer; false at the end.
    pub fn wait(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |state: &mut State| !state.rung && !state.ended;
        let waited = self.changed.wait_while(state, silent);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.rung = false;
        !state.ended
    }
}
