//! The stories: what the threads do, and the result that must follow.

mod entrance;
mod halt;
mod pin;
mod sleep;
mod wire;

/// Each story by its name.
pub const STORIES: [(&str, fn()); 8] = [
    ("wire", wire::frames_that_were_refused_arrive),
    ("sleep", sleep::every_event_wakes),
    ("halted by itself", halt::by_itself),
    ("halted by the host", halt::by_the_host),
    ("halted by the other", halt::by_the_other),
    ("halted by each other", halt::by_each_other),
    ("entrance", entrance::first_accesses_stay),
    ("pin", pin::all_work_is_taken),
];
