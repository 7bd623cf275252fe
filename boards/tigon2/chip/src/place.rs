//! NIC addresses of a structure's fields.

/// Declares the place of a `#[repr(C)]` structure in NIC memory: for each field, a method that
/// returns its NIC address.
///
/// ```
/// #[repr(C)]
/// struct Counter {
///     frames: u32,
///     bytes: u32,
/// }
///
/// tigon2_chip::place! {
///     /// A [`Counter`] in NIC memory.
///     CounterAt: Counter { frames, bytes }
/// }
///
/// assert_eq!(CounterAt(0x8000).bytes(), 0x8004);
/// ```
#[macro_export]
macro_rules! place {
    ($(#[$doc:meta])* $place:ident: $layout:ty { $($field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $place(
            /// NIC address of the first byte.
            pub u32,
        );

        impl $place {
            $(
                #[doc = concat!(
                    "NIC address of [`", stringify!($field), "`](", stringify!($layout),
                    "::", stringify!($field), ")."
                )]
                #[inline(always)]
                pub const fn $field(self) -> u32 {
                    self.0 + ::core::mem::offset_of!($layout, $field) as u32
                }
            )+
        }
    };
}
