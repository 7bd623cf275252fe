//! Nothing is said about pushing an open door.

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
        Open + Shut => Nothing, Closed;
    }
    deferred {  }
    impossible { Closed: Shut; }
}

fn main() {}
