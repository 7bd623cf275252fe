//! Clients whose request has not arrived yet.
//!
//! A client may be held up between its connection and the end of its line, for as long as a busy
//! computer likes. The driver does not wait for it, as its card has work: it takes what has come, and
//! looks again next time.

use std::io::{ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Clients that are waited for. One more, and the one that has come first is let go.
const MOST: usize = 64;
/// How long one is waited for: as long as it would wait for its answer.
const PATIENCE: Duration = super::client::ANSWER;

/// Clients that have connected, and what they have said so far.
#[derive(Debug)]
pub(super) struct Visitors {
    /// The longest request, in bytes.
    longest: usize,
    waiting: Vec<Visitor>,
}

#[derive(Debug)]
struct Visitor {
    stream: UnixStream,
    said: Vec<u8>,
    since: Instant,
}

/// What has come of a client's line.
enum Line {
    /// Not all of it.
    Partly,
    /// All of it, or more than a request has, or all that there will be.
    Whole,
    /// Nothing will come.
    Gone,
}

impl Visitors {
    /// Nobody is there. A request has at most so many bytes.
    pub const fn new(longest: usize) -> Visitors {
        Visitors {
            longest,
            waiting: Vec::new(),
        }
    }

    /// Lets in who has connected, and returns those whose line is there, with it: of both at most so
    /// many.
    pub fn requests(&mut self, listener: &UnixListener, most: usize) -> Vec<(UnixStream, String)> {
        for _ in 0..most {
            let Ok((stream, _)) = listener.accept() else {
                break;
            };
            if stream.set_nonblocking(true).is_ok() {
                self.let_in(stream);
            }
        }
        let mut requests = Vec::new();
        let longest = self.longest;
        let mut waiting = std::mem::take(&mut self.waiting);
        for mut visitor in waiting.drain(..) {
            if requests.len() == most {
                self.waiting.push(visitor);
                continue;
            }
            match visitor.read(longest) {
                Line::Partly if visitor.since.elapsed() < PATIENCE => self.waiting.push(visitor),
                Line::Partly | Line::Gone => {}
                Line::Whole => {
                    let line = String::from_utf8_lossy(&visitor.said).into_owned();
                    requests.push((visitor.stream, line));
                }
            }
        }
        requests
    }

    fn let_in(&mut self, stream: UnixStream) {
        if self.waiting.len() == MOST {
            self.waiting.remove(0);
        }
        self.waiting.push(Visitor {
            stream,
            said: Vec::new(),
            since: Instant::now(),
        });
    }
}

impl Visitor {
    /// Takes what has come.
    fn read(&mut self, longest: usize) -> Line {
        let mut piece = [0; 4096];
        while self.said.len() < longest {
            let count = match self.stream.read(&mut piece) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Line::Partly,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Line::Gone,
            };
            let piece = piece.get(..count).unwrap_or_default();
            self.said.extend(piece);
            if count == 0 && self.said.is_empty() {
                return Line::Gone;
            }
            if count == 0 || piece.contains(&b'\n') {
                return Line::Whole;
            }
        }
        Line::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;

    struct House {
        folder: tempfile::TempDir,
        listener: UnixListener,
        visitors: Visitors,
    }

    impl House {
        fn new() -> House {
            let folder = tempfile::tempdir().expect("a folder");
            let listener = UnixListener::bind(folder.path().join("door")).expect("a socket");
            listener.set_nonblocking(true).expect("a socket");
            House {
                folder,
                listener,
                visitors: Visitors::new(10_000),
            }
        }

        fn door(&self) -> PathBuf {
            self.folder.path().join("door")
        }

        fn visit(&self) -> UnixStream {
            UnixStream::connect(self.door()).expect("it listens")
        }

        fn lines(&mut self) -> Vec<String> {
            let requests = self.visitors.requests(&self.listener, 8);
            requests.into_iter().map(|(_, line)| line).collect()
        }
    }

    #[test]
    fn a_client_that_is_held_up_is_heard_out() {
        let mut house = House::new();
        let mut slow = house.visit();
        assert_eq!(house.lines(), [""; 0]);
        std::thread::sleep(Duration::from_millis(50));
        slow.write_all(b"first ").expect("it listens");
        assert_eq!(house.lines(), [""; 0]);
        // Another one does not wait for it.
        house.visit().write_all(b"quick\n").expect("it listens");
        assert_eq!(house.lines(), ["quick\n"]);
        slow.write_all(b"second\n").expect("it listens");
        assert_eq!(house.lines(), ["first second\n"]);
        assert_eq!(house.lines(), [""; 0]);
        let many: Vec<UnixStream> = (0..20).map(|_| house.visit()).collect();
        for mut one in &many {
            one.write_all(b"me\n").expect("it listens");
        }
        let answered: Vec<usize> = (0..4).map(|_| house.lines().len()).collect();
        assert_eq!(answered, [8, 8, 4, 0], "none is forgotten");
    }

    #[test]
    fn who_goes_is_forgotten_and_who_says_too_much_is_answered() {
        let mut house = House::new();
        drop(house.visit());
        let mut half = house.visit();
        half.write_all(b"half a line").expect("it listens");
        drop(half);
        assert_eq!(house.lines(), ["half a line"]);
        assert!(house.visitors.waiting.is_empty());
        let mut talker = house.visit();
        talker.write_all(&[b'x'; 20_000]).expect("it listens");
        let lines = house.lines();
        assert!(lines.len() == 1 && (10_000..20_000).contains(&lines[0].len()));
    }

    #[test]
    fn those_who_are_silent_make_room() {
        let mut house = House::new();
        let mut silent: Vec<UnixStream> = Vec::new();
        for _ in 0..MOST + 20 {
            silent.push(house.visit());
            assert_eq!(house.lines(), [""; 0]);
        }
        assert_eq!(house.visitors.waiting.len(), MOST);
        house.visit().write_all(b"a word\n").expect("it listens");
        assert_eq!(house.lines(), ["a word\n"]);
        // The last of them is still heard.
        silent
            .last()
            .expect("some")
            .write_all(b"late\n")
            .expect("it listens");
        assert_eq!(house.lines(), ["late\n"]);
        house.visitors.waiting[0].since -= PATIENCE;
        house.lines();
        assert_eq!(house.visitors.waiting.len(), MOST - 3);
    }
}
