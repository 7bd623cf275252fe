//! Runs stories: those of one scene share a stage, and two scenes run at once.
//!
//! A guest takes seconds to boot, so stories without side effects share one. A story that fails is
//! reported with the output of guest and card; its stage is removed, and the next story gets a new
//! one.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Scenes that run at the same time: a guest is one busy thread.
const AT_ONCE: usize = 2;

/// A stage that stories share.
pub trait Scene: Sized {
    /// Sets it up.
    fn raise() -> Self;

    /// Panics if something is wrong that no story asks for, such as a warning
    /// in a kernel log. Done after each story.
    fn inspect(&mut self);

    /// What there is to read after a failure.
    fn testimony(&self) -> String;
}

/// A story on a scene: its name and how it goes.
pub type Story<S> = (&'static str, fn(&mut S));

/// One scene's stories, ready to be played.
pub struct Act {
    name: &'static str,
    stories: Vec<&'static str>,
    play: Play,
}

/// Plays those stories of an act that are wanted.
type Play = Box<dyn FnOnce(&[&str], &Report) + Send>;

impl Act {
    /// The stories of one scene, told in this order.
    pub fn new<S: Scene + 'static>(name: &'static str, stories: Vec<Story<S>>) -> Act {
        Act {
            name,
            stories: stories.iter().map(|story| story.0).collect(),
            play: Box::new(move |wanted, report| {
                let mut stage = None;
                for (story, run) in stories {
                    if wanted.contains(&story) {
                        let end = play(&mut stage, run);
                        report.told(name, story, end);
                    }
                }
            }),
        }
    }
}

/// How a story ended.
struct End {
    seconds: f64,
    /// Why it failed, and what the witnesses say; none: it went well.
    failure: Option<(String, String)>,
}

/// Plays one story; the stage survives it if it went well.
fn play<S: Scene>(stage: &mut Option<S>, run: fn(&mut S)) -> End {
    let start = Instant::now();
    let mut here = stage.take();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let stage = here.get_or_insert_with(S::raise);
        run(stage);
        stage.inspect();
    }));
    let failure = outcome.err().map(|panic| {
        let testimony = here.take().map(|stage| stage.testimony());
        (reason(&*panic), testimony.unwrap_or_default())
    });
    *stage = here;
    End {
        seconds: start.elapsed().as_secs_f64(),
        failure,
    }
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked without a word").to_owned()
}

/// What has been played so far.
struct Report {
    all: usize,
    told: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

impl Report {
    fn told(&self, act: &str, story: &str, end: End) {
        let number = self.told.fetch_add(1, Ordering::Relaxed) + 1;
        let all = self.all;
        let verdict = if end.failure.is_some() {
            "FAILED"
        } else {
            "ok"
        };
        let mut lines = format!(
            "guest: {number:2}/{all} {act}: {story}: {verdict}, {:.1} s\n",
            end.seconds
        );
        if let Some((why, testimony)) = end.failure {
            lines += &format!("  {why}\n{testimony}\n");
            let mut failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
            failed.push(format!("{act}: {story}"));
        }
        // In one piece: two scenes run at once.
        print!("{lines}");
    }
}

/// Plays the stories whose scene or name holds one of `words`, all without words.
pub fn run(acts: Vec<Act>, words: &[String]) -> ExitCode {
    let start = Instant::now();
    let wanted = |act: &Act| -> Vec<&'static str> {
        let named = |text: &str| words.iter().any(|word| text.contains(word.as_str()));
        let all = words.is_empty() || named(act.name);
        let stories = act.stories.iter().copied();
        stories.filter(|story| all || named(story)).collect()
    };
    let queue: VecDeque<(Act, Vec<&'static str>)> = acts
        .into_iter()
        .map(|act| {
            let stories = wanted(&act);
            (act, stories)
        })
        .collect();
    let report = Report {
        all: queue.iter().map(|(_, stories)| stories.len()).sum(),
        told: AtomicUsize::new(0),
        failed: Mutex::new(Vec::new()),
    };
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(|e| e.into_inner()).pop_front();
                    let Some((act, stories)) = next else { return };
                    (act.play)(&stories, &report);
                }
            });
        }
    });
    let failed = report
        .failed
        .into_inner()
        .unwrap_or_else(|e| e.into_inner());
    let seconds = start.elapsed().as_secs();
    if failed.is_empty() {
        println!("guest: {} stories went well in {seconds} s", report.all);
        return ExitCode::SUCCESS;
    }
    println!(
        "guest: {} of {} stories failed in {seconds} s:\n  {}",
        failed.len(),
        report.all,
        failed.join("\n  ")
    );
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    static RAISED: AtomicUsize = AtomicUsize::new(0);

    struct Count(u32);

    impl Scene for Count {
        fn raise() -> Self {
            RAISED.fetch_add(1, Ordering::Relaxed);
            Count(0)
        }
        fn inspect(&mut self) {
            assert!(self.0 < 10, "the stage is broken");
        }
        fn testimony(&self) -> String {
            format!("it stood at {}", self.0)
        }
    }

    /// One after the other, as they share a count of stages.
    #[test]
    fn stories_share_a_stage_until_one_fails() {
        let mut stage = None;
        let good: fn(&mut Count) = |stage| stage.0 += 1;
        assert!(play(&mut stage, good).failure.is_none());
        assert!(play(&mut stage, good).failure.is_none());
        assert_eq!(stage.as_ref().map(|s| s.0), Some(2), "the same stage");

        let bad: fn(&mut Count) = |stage| stage.0 = 10;
        let (why, testimony) = play(&mut stage, bad).failure.expect("inspected");
        assert_eq!(why, "the stage is broken");
        assert_eq!(testimony, "it stood at 10");
        assert!(stage.is_none(), "it is not used again");

        let panics: fn(&mut Count) = |_| panic!("{} of {}", 1, 2);
        let act = |stories| vec![Act::new("counting", stories)];
        assert_eq!(
            format!("{:?}", run(act(vec![("bad", panics), ("good", good)]), &[])),
            format!("{:?}", ExitCode::FAILURE)
        );
        let before = RAISED.load(Ordering::Relaxed);
        let words = ["goo".to_owned()];
        let end = run(act(vec![("bad", panics), ("good", good)]), &words);
        assert_eq!(format!("{end:?}"), format!("{:?}", ExitCode::SUCCESS));
        assert_eq!(RAISED.load(Ordering::Relaxed), before + 1);
    }
}
