//! A task of the bench: an experiment with its traffic, and lists of tasks.

use tigon2_sim::workload::arrivals::{IMIX, Mix, Pattern};
use tigon2_sim::workload::experiment::{Experiment, Traffic};

/// The paper's traffic: all datagrams of one size at equal distances.
pub const CONSTANT: &str = "constant";
/// The paper's datagram sizes, in bytes.
pub const SIZES: [usize; 10] = [18, 100, 200, 400, 600, 800, 1000, 1200, 1400, 1472];
/// Those of a quick look.
pub const QUICK_SIZES: [usize; 4] = [18, 400, 800, 1472];

/// Frames of a burst.
const BURST: u32 = 32;
/// One thing to measure.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which way.
    pub experiment: Experiment,
    /// The traffic's name in the report.
    pub name: String,
    /// The traffic.
    pub traffic: Traffic,
    /// BDs of a sent frame: 2 with the headers in a buffer of their own, as the paper's
    /// driver sends, or 1.
    pub fragments: u32,
}

impl Task {
    fn paper(experiment: Experiment, datagram: usize) -> Task {
        Task {
            experiment,
            name: CONSTANT.to_owned(),
            traffic: Traffic::of(datagram),
            fragments: 2,
        }
    }
}

/// The paper's experiments at every size.
pub fn paper(sizes: &[usize]) -> Vec<Task> {
    Experiment::ALL
        .into_iter()
        .flat_map(|experiment| sizes.iter().map(move |size| Task::paper(experiment, *size)))
        .collect()
}

/// The paper's experiments with one BD for a sent frame, where frames are sent.
pub fn one_bd(sizes: &[usize]) -> Vec<Task> {
    let sends = |task: &Task| task.experiment != Experiment::Receive;
    let tasks = paper(sizes).into_iter().filter(sends);
    tasks
        .map(|task| Task {
            fragments: 1,
            ..task
        })
        .collect()
}

/// What the paper has not: a mix of sizes, bursts, Poisson arrivals.
pub fn beyond(sizes: &[usize]) -> Vec<Task> {
    let imix = [
        Experiment::Send,
        Experiment::Receive,
        Experiment::Bidirectional,
    ];
    let mut tasks: Vec<Task> = imix
        .into_iter()
        .map(|experiment| Task {
            experiment,
            name: "IMIX".to_owned(),
            traffic: Traffic {
                mix: Mix::new(&IMIX),
                pattern: Pattern::Constant,
            },
            fragments: 2,
        })
        .collect();
    for (name, pattern) in [
        (format!("bursts of {BURST}"), Pattern::Bursts(BURST)),
        ("Poisson".to_owned(), Pattern::Poisson),
    ] {
        tasks.extend(sizes.iter().map(|size| Task {
            experiment: Experiment::Receive,
            name: name.clone(),
            traffic: Traffic {
                mix: Mix::only(*size),
                pattern,
            },
            fragments: 2,
        }));
    }
    tasks
}
