//! The paper's model of the speed-up by several CPUs in the network stack.
//!
//! KNET, section 2.2. A connection costs `Te` of CPU time in the network stack and `Ta` in the
//! application. There are `p` CPUs; either one at a time or all may be in the stack:
//!
//! ```text
//!   R1 = 1 / Te          if p > 1 + Ta/Te     one CPU in the stack limits
//!      = p / (Te + Ta)   otherwise            all CPUs together limit
//!   Rp = p / (Te + Ta)
//!   alpha = Rp / R1 = p / (1 + Ta/Te)  if p > 1 + Ta/Te, else 1
//! ```
//!
//! The paper's formula (3) omits the condition, which its text states two paragraphs earlier. The
//! model ignores locks, misses and latencies: the paper measured 1.34 where the model gives 1.8.

/// What a connection costs, and how many CPUs there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    cpus: f64,
    network: f64,
    application: f64,
}

/// A point of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// CPUs.
    pub cpus: u32,
    /// `Ta / Te`.
    pub ratio: f64,
    /// `R1`, in connections in the time `Te`.
    pub one: f64,
    /// `Rp`, likewise.
    pub all: f64,
    /// The speed-up.
    pub alpha: f64,
}

impl Model {
    /// A host of `cpus` CPUs whose connections cost `network` (Te) and `application` (Ta), in
    /// any unit of time. `None` unless there is a CPU, Te is positive and finite, and Ta is
    /// finite and not negative.
    pub fn new(cpus: u32, network: f64, application: f64) -> Option<Model> {
        let network_counts = network.is_finite() && network > 0.0;
        let application_counts = application.is_finite() && application >= 0.0;
        (cpus > 0 && network_counts && application_counts).then_some(Model {
            cpus: f64::from(cpus),
            network,
            application,
        })
    }

    /// `R1`: connections in a unit of time with one CPU in the stack at a time.
    pub fn one(&self) -> f64 {
        if self.stack_limits() {
            1.0 / self.network
        } else {
            self.all()
        }
    }

    /// `Rp`: connections in a unit of time with all CPUs in the stack.
    pub fn all(&self) -> f64 {
        self.cpus / (self.network + self.application)
    }

    /// The speed-up `Rp / R1`, at least 1.
    pub fn alpha(&self) -> f64 {
        if self.stack_limits() {
            self.cpus / (1.0 + self.application / self.network)
        } else {
            1.0
        }
    }

    /// Whether one CPU cannot do all network work: `p > 1 + Ta/Te`.
    pub fn stack_limits(&self) -> bool {
        self.cpus > 1.0 + self.application / self.network
    }
}

/// The table of the model: each number of CPUs with each ratio `Ta / Te`. Pairs that are no
/// model have no row.
pub fn table(cpus: &[u32], ratios: &[f64]) -> Vec<Row> {
    let pairs = cpus
        .iter()
        .flat_map(|cpus| ratios.iter().map(|ratio| (*cpus, *ratio)));
    pairs
        .filter_map(|(cpus, ratio)| {
            let model = Model::new(cpus, 1.0, ratio)?;
            Some(Row {
                cpus,
                ratio,
                one: model.one(),
                all: model.all(),
                alpha: model.alpha(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    /// KNET, section 5.2: 4 CPUs; application and network 75 and 25 % with an MTU of 9000,
    /// 55 and 45 % with 1500.
    #[test]
    fn the_papers_values() {
        let jumbo = Model::new(4, 0.25, 0.75).expect("a model");
        assert!(near(jumbo.alpha(), 1.0), "{jumbo:?}");
        assert!(!jumbo.stack_limits());
        let standard = Model::new(4, 0.45, 0.55).expect("a model");
        assert!(near(standard.alpha(), 1.8), "{standard:?}");
        assert!(near(standard.all(), 4.0) && near(standard.one(), 1.0 / 0.45));
    }

    /// Section 2.2: with too few CPUs all are busy either way.
    #[test]
    fn too_few_cpus_gain_nothing() {
        for (cpus, application) in [(1, 0.0), (1, 3.0), (2, 1.0), (2, 5.0), (4, 3.1)] {
            let model = Model::new(cpus, 1.0, application).expect("a model");
            assert!(near(model.alpha(), 1.0), "{model:?}");
            assert!(near(model.one(), model.all()), "{model:?}");
        }
    }

    #[test]
    fn alpha_is_the_quotient_of_both_rates() {
        let ratios = [0.0, 0.25, 0.5, 1.0, 1.22, 2.0, 3.0, 4.0];
        let rows = table(&[1, 2, 4, 8], &ratios);
        assert_eq!(rows.len(), 4 * ratios.len());
        for row in rows {
            assert!(near(row.alpha, row.all / row.one), "{row:?}");
            assert!(
                row.alpha >= 1.0 && row.alpha <= f64::from(row.cpus),
                "{row:?}"
            );
            // Neither the whole host nor, one at a time, the stack is overcommitted.
            assert!(row.all * (1.0 + row.ratio) <= f64::from(row.cpus) * 1.000_001);
            assert!(row.one <= 1.000_001, "{row:?}");
        }
    }

    #[test]
    fn nonsense_is_no_model() {
        for (cpus, network, application) in [
            (0, 1.0, 1.0),
            (4, 0.0, 1.0),
            (4, -1.0, 1.0),
            (4, f64::NAN, 1.0),
            (4, 1.0, -0.1),
            (4, 1.0, f64::INFINITY),
        ] {
            assert_eq!(Model::new(cpus, network, application), None);
        }
        assert!(table(&[0], &[1.0]).is_empty());
    }
}
