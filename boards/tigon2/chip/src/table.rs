//! Tables of numbered constants: registers, events, shared words, commands.

/// How a register or a word can be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read only: writes change nothing.
    R,
    /// Read and write. Single bits may be read only or write 1 to clear; their fields say so.
    RW,
    /// Read, and write 1 to clear: a bit written as 1 becomes 0, one written as 0 stays.
    W1C,
}

impl Access {
    /// Whether a write may change anything.
    #[inline]
    pub const fn is_writable(self) -> bool {
        !matches!(self, Access::R)
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Access::R => "R",
            Access::RW => "RW",
            Access::W1C => "W1C",
        }
    }
}

/// Declares an enum of numbers once, for all users of their names: each variant has a number, a
/// name and documentation, and with `access` an [`Access`].
///
/// ```
/// use tigon2_chip::Access;
///
/// tigon2_chip::table! {
///     /// A register of the timer.
///     pub enum TimerRegister: u16 with access {
///         /// Microseconds since start.
///         Count: R = 0x54,
///         /// When it fires.
///         Reference: RW = 0x58,
///     }
/// }
///
/// assert_eq!(TimerRegister::ALL.len(), 2);
/// assert_eq!(TimerRegister::from_number(0x58), Some(TimerRegister::Reference));
/// assert_eq!(TimerRegister::from_number(0x5C), None);
/// assert_eq!(TimerRegister::Count.name(), "Count");
/// assert_eq!(TimerRegister::Count.summary(), "Microseconds since start.");
/// assert_eq!(TimerRegister::Count.access(), Access::R);
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub enum $table:ident: $repr:ident with access {
            $( $(#[doc = $doc:literal])+ $name:ident: $access:ident = $number:literal, )+
        }
    ) => {
        $crate::table! {
            $(#[$meta])*
            pub enum $table: $repr {
                $( $(#[doc = $doc])+ $name = $number, )+
            }
        }

        impl $table {
            /// Whether it can be written, and how.
            #[inline]
            pub const fn access(self) -> $crate::Access {
                match self {
                    $( $table::$name => $crate::Access::$access, )+
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $table:ident: $repr:ident {
            $( $(#[doc = $doc:literal])+ $name:ident = $number:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr($repr)]
        pub enum $table {
            $( $(#[doc = $doc])+ $name = $number, )+
        }

        impl $table {
            /// All of them, in the order of their numbers.
            pub const ALL: &[$table] = &[ $( $table::$name, )+ ];

            /// The variant with a number, if there is one.
            #[inline]
            pub const fn from_number(number: u32) -> Option<$table> {
                match number {
                    $( $number => Some($table::$name), )+
                    _ => None,
                }
            }

            /// Its number.
            #[inline]
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// Its name as it is spelled here.
            pub const fn name(self) -> &'static str {
                match self {
                    $( $table::$name => stringify!($name), )+
                }
            }

            /// Its documentation, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $( $table::$name => concat!($($doc),+).trim_ascii(), )+
                }
            }
        }

        const _: () = {
            let mut index = 1;
            while index < $table::ALL.len() {
                assert!($table::ALL[index - 1].number() < $table::ALL[index].number());
                index += 1;
            }
        };
    };
}
