//! A door that never closes.

frame_pipeline::machine! {
    /// A door.
    machine Door "DOOR";
    states {
        /// It is closed.
        Closed,
        /// It is open.
        Open,
    }
    events {
        /// Somebody pushes it.
        Push: External,
        /// It falls shut.
        Shut: External,
    }
    conditions {
        /// The key was turned.
        Locked,
    }
    actions {
        /// Nothing.
        Nothing,
    }
    rows {
        Closed + Push if Locked => Nothing, Closed;
        Closed + Push unless Locked => Nothing, Open;
        Open + Shut => Nothing, Open;
    }
    deferred { Open: Push; }
    impossible { Closed: Shut; }
}

fn main() {}
