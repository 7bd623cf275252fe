//! Selects the CPU of each network thread.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::KnetError;

/// The CPUs that this process may use, in order.
///
/// # Errors
/// What the system says.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// A CPU for each of so many queues: those that were `named`, or the first that are allowed.
/// A queue has a CPU of its own, unless one was named twice.
///
/// # Errors
/// [`KnetError::TooFewCpus`] and [`KnetError::NoSuchCpu`].
pub fn choose(queues: usize, named: &[usize], allowed: &[usize]) -> Result<Vec<usize>, KnetError> {
    if let Some(cpu) = named.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(KnetError::NoSuchCpu {
            cpu: *cpu,
            allowed: allowed.to_vec(),
        });
    }
    let from = if named.is_empty() { allowed } else { named };
    if from.len() < queues {
        return Err(KnetError::TooFewCpus {
            queues,
            named: !named.is_empty(),
            cpus: from.to_vec(),
        });
    }
    Ok(from.iter().copied().take(queues).collect())
}

/// Binds this thread to a CPU.
///
/// # Errors
/// What the system says.
pub fn bind(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_a_cpu_of_its_own() {
        assert_eq!(choose(2, &[], &[1, 3, 5]).expect("enough"), [1, 3]);
        assert_eq!(choose(2, &[5, 1], &[1, 3, 5]).expect("named"), [5, 1]);
        let shared = choose(4, &[1, 3, 1, 3], &[1, 3]).expect("named twice");
        assert_eq!(shared, [1, 3, 1, 3]);
    }

    #[test]
    fn too_few_cpus_are_refused_with_the_way_out() {
        let refused = |queues, named: &[usize]| {
            let error = choose(queues, named, &[0, 1]).expect_err("refused");
            error.to_string()
        };
        assert_eq!(
            refused(4, &[]),
            "4 queues want a CPU each, and this process may use 0, 1: fewer queues, or name a \
             CPU for each, one twice if it is to have two"
        );
        assert_eq!(
            refused(3, &[0, 1]),
            "3 queues want a CPU each, and 0, 1 were named"
        );
        assert_eq!(refused(1, &[7]), "CPU 7 is not one of 0, 1");
    }

    #[test]
    fn a_thread_stays_where_it_is_bound() {
        let cpus = allowed().expect("a process runs somewhere");
        let last = *cpus.last().expect("one at least");
        let inside = std::thread::spawn(move || bind(last).and_then(|()| allowed()));
        let inside = inside.join().expect("no panic").expect("an allowed CPU");
        assert_eq!(inside, [last]);
        assert_eq!(allowed().expect("as before"), cpus, "this thread is not");
    }
}
