//! Rows of one state and event that stand apart.

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
        Open + Shut => Nothing, Closed;
        Closed + Push unless Locked => Nothing, Open;
    }
    deferred { Open: Push; }
    impossible { Closed: Shut; }
}

fn main() {}
