//! The notation in which a machine is written.

/// Defines a machine: the enums `State`, `Event`, `Condition` and `Action`, its `TABLE`, which
/// the compiler checks, and a type for [`Machine`](crate::Machine).
///
/// ```
/// frame_pipeline::machine! {
///     /// A door that must not be locked while it is open.
///     machine Door "DOOR";
///     states {
///         /// It is closed.
///         Closed,
///         /// It is open.
///         Open,
///     }
///     events {
///         /// Somebody pushes it.
///         Push: External,
///         /// It falls shut.
///         Shut: External,
///     }
///     conditions {
///         /// The key was turned.
///         Locked,
///     }
///     actions {
///         /// Nothing.
///         Nothing,
///         /// A bell rings.
///         Ring,
///     }
///     rows {
///         Closed + Push if Locked => Ring, Closed;
///         Closed + Push unless Locked => Nothing, Open;
///         Open + Shut => Nothing, Closed;
///     }
///     deferred { Open: Push; }
///     impossible { Closed: Shut; }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! machine {
    (
        $(#[doc = $text:literal])*
        machine $machine:ident $name:literal;
        states { $($(#[doc = $state_text:literal])+ $state:ident),+ $(,)? }
        events { $($(#[doc = $event_text:literal])+ $event:ident : $class:ident),+ $(,)? }
        conditions { $($(#[doc = $condition_text:literal])+ $condition:ident),+ $(,)? }
        actions { $($(#[doc = $action_text:literal])+ $action:ident),+ $(,)? }
        rows {
            $($from:ident + $on:ident $(if $($yes:ident)&+)? $(unless $($no:ident)|+)?
                => $act:ident, $to:ident;)+
        }
        deferred { $($waits_in:ident : $($waits:ident),+;)* }
        impossible { $($never_in:ident : $($never:ident),+;)* }
    ) => {
        $(#[doc = $text])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $machine;

        /// The machine's states.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum State { $($(#[doc = $state_text])+ $state),+ }

        /// What makes it move, the most urgent first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Event { $($(#[doc = $event_text])+ $event),+ }

        /// What decides between its rows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Condition { $($(#[doc = $condition_text])+ $condition),+ }

        /// What its rows do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Action { $($(#[doc = $action_text])+ $action),+ }

        const STATES: &[State] = &[$(State::$state),+];
        const CONDITIONS: &[Condition] = &[$(Condition::$condition),+];
        const ACTIONS: &[Action] = &[$(Action::$action),+];

        /// The machine's table.
        pub const TABLE: $crate::Table = $crate::Table {
            name: $name,
            states: &[$($crate::table::Named {
                name: stringify!($state),
                text: concat!($($state_text),+),
            }),+],
            events: &[$($crate::table::Named {
                name: stringify!($event),
                text: concat!($($event_text),+),
            }),+],
            classes: &[$($crate::Class::$class),+],
            conditions: &[$($crate::table::Named {
                name: stringify!($condition),
                text: concat!($($condition_text),+),
            }),+],
            actions: &[$($crate::table::Named {
                name: stringify!($action),
                text: concat!($($action_text),+),
            }),+],
            rows: &[$($crate::Row {
                from: State::$from as u8,
                event: Event::$on as u8,
                mask: 0 $($(| 1 << Condition::$yes as u8)+)? $($(| 1 << Condition::$no as u8)+)?,
                value: 0 $($(| 1 << Condition::$yes as u8)+)?,
                action: Action::$act as u8,
                to: State::$to as u8,
            }),+],
            deferred: &[$($($crate::table::Pair {
                state: State::$waits_in as u8,
                event: Event::$waits as u8,
            },)+)*],
            impossible: &[$($($crate::table::Pair {
                state: State::$never_in as u8,
                event: Event::$never as u8,
            },)+)*],
        };

        const _: () = TABLE.check();

        impl $crate::Definition for $machine {
            type State = State;
            type Event = Event;
            type Condition = Condition;
            type Action = Action;
            const TABLE: &'static $crate::Table = &TABLE;
            const STATES: &'static [State] = STATES;
            const CONDITIONS: &'static [Condition] = CONDITIONS;
            const ACTIONS: &'static [Action] = ACTIONS;

            fn number(event: Event) -> u8 {
                event as u8
            }

            #[inline(always)]
            fn place(state: State) -> u32 {
                state as u32
            }

            #[inline(always)]
            fn bit(condition: Condition) -> u32 {
                condition as u32
            }

            #[inline(always)]
            fn select(
                state: u32,
                event: Event,
                mut holds: impl FnMut(Condition) -> bool,
            ) -> Result<$crate::Selected<Action>, $crate::Step> {
                let mut row = 0;
                $(
                    if state == State::$from as u32 && event == Event::$on
                        $($(&& holds(Condition::$yes))+)? $($(&& !holds(Condition::$no))+)?
                    {
                        return Ok($crate::Selected {
                            row,
                            action: Action::$act,
                            to: State::$to as u32,
                        });
                    }
                    row += 1;
                )+
                let _ = row;
                $($(
                    if state == State::$waits_in as u32 && event == Event::$waits {
                        return Err($crate::Step::Deferred);
                    }
                )+)*
                Err($crate::Step::Impossible)
            }
        }
    };
}
