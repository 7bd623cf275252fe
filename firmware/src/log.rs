//! Messages for developers: defmt on the chip, nothing on a host.
//!
//! None is on the packet path.

/// Makes one logging macro.
macro_rules! level {
    ($name:ident, $level:ident, $dollar:tt) => {
        macro_rules! $name {
                    ($dollar format:literal $dollar(, $dollar argument:expr)* $dollar(,)?) => {{
                        #[cfg(target_arch = "mips")]
                        defmt::$level!($dollar format $dollar(, $dollar argument)*);
                        #[cfg(not(target_arch = "mips"))]
                        { $dollar( let _ = &$dollar argument; )* }
                    }};
                }
        pub(crate) use $name;
    };
}

level!(log_error, error, $);
level!(log_warn, warn, $);
level!(log_info, info, $);
