//! `cargo xtask repeat`: repeats a command on a busy computer, and counts its failures.
//!
//! A failure in one of fifty runs is a fault too, and appears when other programs use the
//! processors. The load consists of threads that count.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testbed::{interrupt, paths, process};

/// How long one repetition may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// The command, the number of runs, and the load.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of runs
    #[arg(long, default_value_t = 100)]
    pub times: u32,
    /// Number of busy loops beside it
    #[arg(long, default_value_t = 2)]
    pub hogs: u32,
    /// The command and its arguments, as after `cargo xtask`
    #[arg(last = true, required = true)]
    pub words: Vec<String>,
}

/// Repeats it; fails if one repetition did.
///
/// # Errors
/// When a repetition failed, after all of them; when the command cannot be started.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = std::env::current_exe()?;
    // What is built, is built once and without hogs; this is a repetition, too.
    let mut hogs = None;
    let mut failures = 0;
    let start = Instant::now();
    for time in 1..=arguments.times {
        let mut command = Command::new(&program);
        command.args(&arguments.words);
        let ended = process::collect(&mut command, LIMIT);
        interrupt::check()?;
        let (good, said) = match ended {
            Ok(ended) => (ended.status.success(), ended.stdout + &ended.stderr),
            Err(error) => (false, format!("{error:#}\n")),
        };
        failures += u32::from(!good);
        if !good && failures == 1 {
            let log = keep(&said)?;
            println!("repeat: the first failure is in {}", log.display());
        }
        let seconds = start.elapsed().as_secs();
        println!(
            "repeat: {time} of {}, {failures} failed, {seconds} s",
            arguments.times
        );
        hogs.get_or_insert_with(|| Hogs::start(arguments.hogs));
    }
    let times = arguments.times;
    ensure!(failures == 0, "{failures} of {times} repetitions failed");
    Ok(())
}

/// Writes what the first failure said to the reports.
fn keep(said: &str) -> Result<PathBuf> {
    let folder = paths::target().join("reports");
    fs::create_dir_all(&folder)?;
    let log = folder.join("repeat-failure.log");
    fs::write(&log, said).with_context(|| format!("cannot write {}", log.display()))?;
    Ok(log)
}

/// Busy loops; dropping them ends them.
#[derive(Debug)]
struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    fn start(count: u32) -> Hogs {
        let stop = Arc::new(AtomicBool::new(false));
        let hog = |stop: Arc<AtomicBool>| {
            let mut turns = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                turns = black_box(turns.wrapping_add(1));
            }
        };
        let threads = (0..count).map(|_| stop.clone());
        let threads = threads.map(|stop| std::thread::spawn(move || hog(stop)));
        Hogs {
            threads: threads.collect(),
            stop,
        }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A hog that has panicked counts no more, as wanted.
            let _ = thread.join();
        }
    }
}
