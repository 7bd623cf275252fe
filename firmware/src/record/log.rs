//! Messages for developers: defmt on the chip, nothing on a host.
//!
//! None is on the packet path, so that what a frame costs is not changed by the log. A message
//! is made if its module's word in the log block says so, which the host may change at any
//! time; levels that `DEFMT_LOG` left out when the firmware was built cost nothing.
//!
//! ```text
//! log_info!(..)  -->  built in?  -->  word of the module >= level?  -->  defmt, ring of the CPU
//!                     0 cycles        a load, a branch
//! ```

#[cfg(target_arch = "mips")]
use crate::memory::layout::LOG;
#[cfg(any(target_arch = "mips", test))]
use host_interface::log::Level;

/// Makes one logging macro.
macro_rules! level {
    ($name:ident, $level:ident, $constant:ident, $dollar:tt) => {
        // A message stands where the macro is used, for the log's reader, too.
        #[collapse_debuginfo(yes)]
        #[allow(unused_macros)]
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
        #[allow(unused_imports)]
        pub(crate) use $name;
    };
}

level!(log_error, error, Error, $);
level!(log_warn, warn, Warn, $);
level!(log_info, info, Info, $);
level!(log_debug, debug, Debug, $);
level!(log_trace, trace, Trace, $);

// The texts' section is at address 0, and the number of a text is its address. gdb takes them
// for code; CPU B, while it was never started, is at address 0: so none may be there, or at 1,
// which is the same to gdb on MIPS.
#[cfg(target_arch = "mips")]
core::arch::global_asm!(
    ".pushsection .defmt.prim.first, \"\", @progbits",
    ".space 15",
    ".popsection"
);

/// Whether the build has messages of a level, in some module at least.
#[cfg(target_arch = "mips")]
pub(crate) const fn is_built_in(level: Level) -> bool {
    const MOST: Level = match option_env!("DEFMT_LOG") {
        Some(words) => most_detailed(words),
        // As defmt takes it.
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

/// The most detailed level that defmt's filter speaks of.
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
