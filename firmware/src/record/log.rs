//! Messages for developers: defmt on the chip, nothing on a host.
//!
//! The packet path logs nothing, so the log does not change the cost of a frame. A message is
//! recorded if its module's level word in the log block permits it; the host may change that word
//! at any time. Levels that `DEFMT_LOG` excluded at build time cost nothing.
//!
//! ```text
//! log_info!(..)  -->  built in?  -->  word of the module >= level?  -->  defmt, ring of the CPU
//!                     0 cycles        a load, a branch
//! ```

#[cfg(target_arch = "mips")]
use crate::memory::layout::LOG;
#[cfg(any(target_arch = "mips", test))]
use host_interface::log::Level;

/// Declares one logging macro.
macro_rules! level {
    ($name:ident, $level:ident, $constant:ident, $dollar:tt) => {
        // The reader of the log shows the place where the macro is used.
        #[collapse_debuginfo(yes)]
        macro_rules! $name {
                    ($dollar format:literal $dollar(, $dollar argument:expr)* $dollar(,)?) => {{
                        #[cfg(target_arch = "mips")]
                        {
                            use host_interface::log::{self, Level};
                            const MODULE: usize = match log::module_of(module_path!()) {
                                Some(module) => module,
                                None => panic!("the module has no level word"),
                            };
                            if $crate::record::log::is_built_in(Level::$constant)
                                && $crate::record::log::is_recorded(MODULE, Level::$constant)
                            {
                                defmt::$level!($dollar format $dollar(, $dollar argument)*);
                            }
                        }
                        #[cfg(not(target_arch = "mips"))]
                        { $dollar( let _ = &$dollar argument; )* }
                    }};
                }
        pub(crate) use $name;
    };
}

level!(log_error, error, Error, $);
level!(log_warn, warn, Warn, $);
level!(log_info, info, Info, $);
level!(log_debug, debug, Debug, $);
level!(log_trace, trace, Trace, $);

// The section of the texts is at address 0, and a text's number is its address. gdb takes the
// texts for code, and a CPU B that was never started is at address 0. So no text may be there, or
// at 1, which gdb on MIPS treats as the same address.
#[cfg(target_arch = "mips")]
core::arch::global_asm!(
    ".pushsection .defmt.prim.first, \"\", @progbits",
    ".space 15",
    ".popsection"
);

/// Whether the build has messages of a level, in at least one module.
#[cfg(target_arch = "mips")]
pub(crate) const fn is_built_in(level: Level) -> bool {
    const MOST: Level = match option_env!("DEFMT_LOG") {
        Some(words) => most_detailed(words),
        // As defmt does.
        None => Level::Error,
    };
    level as u32 <= MOST as u32
}

/// Whether messages of a level are recorded in a module: one load and one branch.
#[cfg(target_arch = "mips")]
#[inline(always)]
pub(crate) fn is_recorded(module: usize, level: Level) -> bool {
    let word = LOG + host_interface::log::level_word(module);
    tigon2_hal::Mmio::peek(word) >= level as u32
}

/// The most detailed level in defmt's filter.
#[cfg(any(target_arch = "mips", test))]
const fn most_detailed(words: &str) -> Level {
    let mut most = Level::Off;
    let mut index = 0;
    while index < Level::ALL.len() {
        let level = Level::ALL[index];
        if contains(words.as_bytes(), level.name().as_bytes()) {
            most = level;
        }
        index += 1;
    }
    most
}

#[cfg(any(target_arch = "mips", test))]
const fn contains(text: &[u8], word: &[u8]) -> bool {
    let mut at = 0;
    while at + word.len() <= text.len() {
        let mut same = 0;
        while same < word.len() && text[at + same] == word[same] {
            same += 1;
        }
        if same == word.len() {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_detailed_level_of_a_filter_is_found() {
        for (words, level) in [
            ("off", Level::Off),
            ("info", Level::Info),
            ("warn,tigon_firmware::link=trace", Level::Trace),
            ("tigon_firmware::phy=debug,error", Level::Debug),
            ("", Level::Off),
        ] {
            assert_eq!(most_detailed(words), level, "{words}");
        }
    }
}
