//! Runs random schedules of an image on a board file's card, as a quick check after a change:
//! `schedules IMAGE BOARD FROM TO`, where FROM and TO are seeds. It prints the schedules that
//! fail, and the reasons.

use tigon2_model::Board;
use tigon2_sim::Machine;
use tigon2_sim::SimTransport;
use tigon2_sim::explore;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [image, board, from, to] = &arguments[..] else {
        panic!("schedules IMAGE BOARD FROM TO");
    };
    let image = std::fs::read(image).expect("a readable image");
    let board = std::fs::read_to_string(board).expect("a board file");
    let board = Board::from_toml(&board).expect("a board");
    let seed = |text: &String| text.parse::<u64>().expect("a seed");
    let (mut frames, mut failed) = (0, 0);
    for seed in seed(from)..=seed(to) {
        let transport = SimTransport::new(Machine::new(board.clone()));
        match explore::run_on(transport, &image, seed, explore::PATIENCE, None) {
            Ok(outcome) => frames += outcome.frames,
            Err(error) => {
                failed += 1;
                println!("seed {seed}: {error}");
            }
        }
    }
    println!("{frames} frames, {failed} schedules failed");
}
