//! Machines that run, traces that are followed, tables that must not compile.

use frame_pipeline::send::{Action, Condition, Event, Send, State};
use frame_pipeline::trace::{Checker, Entry, Fault};
use frame_pipeline::{Definition, Machine, Step, TABLES, World};

/// A world that holds what it is told to, and notes what was asked and done.
#[derive(Default)]
struct Notes {
    holding: Vec<Condition>,
    asked: Vec<Condition>,
    done: Vec<Action>,
}

impl World<Send> for Notes {
    fn holds(&mut self, condition: Condition) -> bool {
        self.asked.push(condition);
        self.holding.contains(&condition)
    }

    fn act(&mut self, action: Action) {
        self.done.push(action);
    }
}

#[test]
fn a_frame_whose_part_is_late_is_sent_again_whole() {
    let mut send = Machine::<Send>::new();
    let mut world = Notes {
        holding: vec![Condition::InTime],
        ..Notes::default()
    };
    let taken = |step| matches!(step, Step::Taken(_));
    assert!(taken(send.step(Event::OfferedEarly, &mut world)));
    assert!(taken(send.step(Event::PartArrived, &mut world)));
    assert_eq!(send.state(), State::Watched);
    world.holding.clear();
    assert!(taken(send.step(Event::PartArrived, &mut world)));
    assert_eq!(send.state(), State::Aborted);
    assert!(taken(send.step(Event::LastArrived, &mut world)));
    assert!(taken(send.step(Event::Sent, &mut world)));
    assert_eq!(send.state(), State::Idle);
    assert_eq!(
        world.done,
        [
            Action::QueueEarly,
            Action::Certify,
            Action::Abort,
            Action::Resume,
            Action::Free
        ]
    );
    // Each step asks for its conditions once.
    let asked = [Condition::InTime, Condition::InTime, Condition::MacHasMore];
    assert_eq!(world.asked, asked);
}

#[test]
fn what_cannot_come_changes_nothing() {
    let mut send = Machine::<Send>::new();
    let mut world = Notes::default();
    assert_eq!(send.step(Event::Sent, &mut world), Step::Impossible);
    assert_eq!(send.state(), State::Idle);
    assert!(world.done.is_empty() && world.asked.is_empty());
}

#[test]
fn events_that_wait_are_told_from_those_that_cannot_come() {
    use frame_pipeline::sdma;
    struct Willing;
    impl World<sdma::Sdma> for Willing {
        fn holds(&mut self, _: sdma::Condition) -> bool {
            false
        }
        fn act(&mut self, _: sdma::Action) {}
    }
    let mut fetch = Machine::<sdma::Sdma>::new();
    fetch.step(sdma::Event::Posted, &mut Willing);
    assert!(fetch.defers(sdma::Event::Posted));
    let step = fetch.step(sdma::Event::Posted, &mut Willing);
    assert_eq!(step, Step::Deferred);
    let step = fetch.step(sdma::Event::SumStored, &mut Willing);
    assert_eq!(step, Step::Impossible);
    assert_eq!(fetch.state(), sdma::State::Sdma);
}

#[test]
fn the_checker_follows_rows_and_names_what_is_none() {
    let mut checker = Checker::default();
    let row = |from: State, event: Event| {
        let (first, count) = TABLES[1].span(from as u8, event as u8);
        assert_ne!(count, 0);
        Entry::from_byte(Entry::new(1, first as u8).byte())
    };
    let early = row(State::Idle, Event::OfferedEarly);
    let late = row(State::Watched, Event::Deadline);
    assert_eq!(checker.follow(early), Ok(()));
    assert_eq!(checker.follow(late), Ok(()));
    assert_eq!(checker.state(1), State::Aborted as u8);
    let fault = checker.follow(late);
    assert_eq!(fault, Err(Fault::NotFrom(late, State::Aborted as u8)));
    let beyond = Entry::new(1, 63);
    assert_eq!(checker.follow(beyond), Err(Fault::NoRow(beyond)));
    assert_eq!(checker.taken(1).count_ones(), 2);
}

#[test]
fn wrong_tables_and_transitions_of_ones_own_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// The comparisons that a machine runs by are the rows of its table, in every state, for every event
/// and under all conditions.
fn runs_by_its_table<D: Definition>(events: &[D::Event]) {
    let table = D::TABLE;
    for state in 0..table.states.len() as u8 {
        for event in events {
            let number = D::number(*event);
            for conditions in 0..1u8 << table.conditions.len() {
                let selected = D::select(u32::from(state), *event, |condition| {
                    conditions >> D::bit(condition) & 1 == 1
                });
                let mut rows = (0..).zip(table.rows);
                let row = rows.find(|(_, row)| row.matches(state, number, conditions));
                match (selected, row) {
                    (Ok(selected), Some((at, row))) => {
                        assert_eq!((selected.row, selected.to), (at, u32::from(row.to)));
                        let action = D::ACTIONS[usize::from(row.action)];
                        assert!(selected.action == action);
                    }
                    (Err(Step::Deferred), None) => assert!(table.defers(state, number)),
                    (Err(Step::Impossible), None) => assert!(table.excludes(state, number)),
                    _ => panic!("{}: state {state}, event {number}", table.name),
                }
            }
        }
    }
}

#[test]
fn a_machine_runs_by_its_table() {
    use frame_pipeline::{rdma, recv, sdma};
    use rdma::Event as R;
    runs_by_its_table::<sdma::Sdma>(&[
        sdma::Event::Failed,
        sdma::Event::Arrived,
        sdma::Event::SumStored,
        sdma::Event::Closed,
        sdma::Event::Posted,
    ]);
    runs_by_its_table::<Send>(&[
        Event::PartFailed,
        Event::PartArrived,
        Event::LastArrived,
        Event::OfferedWhole,
        Event::OfferedEarly,
        Event::Deadline,
        Event::Sent,
    ]);
    runs_by_its_table::<recv::Recv>(&[
        recv::Event::Begun,
        recv::Event::Grown,
        recv::Event::Ended,
        recv::Event::GaveUp,
    ]);
    runs_by_its_table::<rdma::Rdma>(&[
        R::Waiting,
        R::Opened,
        R::Closed,
        R::Written,
        R::Gone,
        R::Failed,
        R::More,
        R::LastGood,
    ]);
}
