//! Files in memory that all copies of a server share.
//!
//! ```text
//!   word 0    magic           8  first free byte
//!   word 16   ENTRIES of 8 words: state, hash, path (first byte, bytes), file (first byte, bytes), changed
//!   ...       paths and files, each from a whole word on
//! ```
//!
//! Entries are only added, under the file's lock, and published by their state: whoever finds one
//! reads it without a lock. What was read once stays as it was.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use dusi::shared::{Mapping, Words, read_bytes, write_bytes};

use crate::reply::Meta;

/// "userver" and the layout's version.
const MAGIC: u64 = 0x7573_6572_7665_7201;
/// Word of the first byte that is free.
const FREE: usize = 8;
const FIRST: usize = 16;
const ENTRIES: usize = 4096;
const ENTRY_WORDS: usize = 8;
/// Entries that a path may stand in.
const PROBES: usize = 16;
/// An entry that is published.
const READY: u64 = 1;
/// Bytes read at a time.
const PIECE: usize = 256 * 1024;
/// Bytes of the longest path.
const LONGEST_PATH: usize = 1024;

/// A file in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// First byte in the memory file.
    pub offset: u64,
    /// Its size and time.
    pub meta: Meta,
}

/// The cache.
#[derive(Debug)]
pub struct Cache {
    memory: Mapping,
    /// The same file, opened by itself: a lock is that of one opening.
    lock: File,
}

impl Cache {
    /// A new one.
    ///
    /// # Errors
    /// The system's, for example without memory.
    pub fn create(bytes: u64) -> io::Result<Self> {
        let words = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        let words = words.max(FIRST + ENTRIES * ENTRY_WORDS + 512);
        let memory = Mapping::create(words.next_multiple_of(512))?;
        let first = (FIRST + ENTRIES * ENTRY_WORDS) as u64 * 8;
        memory.store(FREE, first, Ordering::Relaxed);
        memory.store(0, MAGIC, Ordering::Release);
        let file = memory.file().try_clone_to_owned()?;
        Self::of(memory, file)
    }

    /// Another copy's, at a path of `/proc`.
    ///
    /// # Errors
    /// The system's; `InvalidData` if it is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let memory = Mapping::open(file.try_clone()?.into())?;
        let room = FIRST + ENTRIES * ENTRY_WORDS;
        if memory.len() <= room || memory.load(0, Ordering::Acquire) != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::of(memory, file.into())
    }

    fn of(memory: Mapping, file: OwnedFd) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        let lock = File::options().read(true).write(true).open(again)?;
        Ok(Self { memory, lock })
    }

    /// The memory file, to register it and to hand it to copies.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// Another handle of it.
    ///
    /// # Errors
    /// The system's.
    pub fn share(&self) -> io::Result<Self> {
        let file = self.memory.file().try_clone_to_owned()?;
        let memory = Mapping::open(file.try_clone()?)?;
        Self::of(memory, file)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.memory.len() as u64 * 8
    }

    fn entry(hash: u64, probe: usize) -> usize {
        FIRST + (hash as usize).wrapping_add(probe) % ENTRIES * ENTRY_WORDS
    }

    fn word(&self, index: usize) -> u64 {
        self.memory.load(index, Ordering::Relaxed)
    }

    /// Finds a file by its path below the root.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<Place> {
        let hash = hash(path);
        for probe in 0..PROBES {
            let entry = Self::entry(hash, probe);
            if self.memory.load(entry, Ordering::Acquire) != READY {
                return None;
            }
            if self.word(entry + 1) == hash && self.is(entry, path) {
                return Some(Place {
                    offset: self.word(entry + 4),
                    meta: Meta {
                        length: self.word(entry + 5),
                        modified: self.word(entry + 6),
                    },
                });
            }
        }
        None
    }

    /// Whether an entry is that of a path.
    fn is(&self, entry: usize, path: &str) -> bool {
        let (start, bytes) = (self.word(entry + 2), self.word(entry + 3));
        if bytes != path.len() as u64 || path.len() > LONGEST_PATH {
            return false;
        }
        let mut found = [0; LONGEST_PATH];
        let found = &mut found[..path.len()];
        read_bytes(&self.memory, start as usize / 8, found);
        found == path.as_bytes()
    }

    /// Reads a file into the cache, unless another copy has done so; none if there is no room.
    ///
    /// # Errors
    /// The system's, for example if the file has become shorter.
    pub fn insert(&self, path: &str, file: &File, meta: Meta) -> io::Result<Option<Place>> {
        self.lock.lock()?;
        let inserted = self.insert_locked(path, file, meta);
        self.lock.unlock()?;
        inserted
    }

    fn insert_locked(&self, path: &str, file: &File, meta: Meta) -> io::Result<Option<Place>> {
        if let Some(found) = self.find(path) {
            return Ok(Some(found));
        }
        let hash = hash(path);
        let mut entries = (0..PROBES).map(|probe| Self::entry(hash, probe));
        let Some(entry) = entries.find(|entry| self.word(*entry) != READY) else {
            return Ok(None);
        };
        let name = self.word(FREE);
        let offset = name + (path.len() as u64).next_multiple_of(8);
        let end = offset.saturating_add(meta.length.next_multiple_of(8));
        if end > self.bytes() || path.len() > LONGEST_PATH {
            return Ok(None);
        }
        write_bytes(&self.memory, name as usize / 8, path.as_bytes());
        let mut piece = vec![0; PIECE.min(meta.length as usize)];
        let mut done = 0;
        while done < meta.length {
            let part = &mut piece[..PIECE.min((meta.length - done) as usize)];
            file.read_exact_at(part, done)?;
            write_bytes(&self.memory, (offset + done) as usize / 8, part);
            done += part.len() as u64;
        }
        let words = [
            hash,
            name,
            path.len() as u64,
            offset,
            meta.length,
            meta.modified,
        ];
        for (index, word) in words.into_iter().enumerate() {
            self.memory
                .store(entry + 1 + index, word, Ordering::Relaxed);
        }
        self.memory.store(FREE, end, Ordering::Relaxed);
        self.memory.store(entry, READY, Ordering::Release);
        Ok(Some(Place { offset, meta }))
    }
}

impl AsFd for Cache {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }
}

/// The same in all copies.
fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(path.as_bytes());
    hasher.finish()
}

/// A regular file whose real place, links resolved, is below the root, and what is known of it.
pub(crate) fn open(root: &Path, path: &Path) -> Option<(File, Meta)> {
    let root = root.canonicalize().ok()?;
    let place = root.join(path).canonicalize().ok()?;
    if !place.starts_with(&root) || !place.is_file() {
        return None;
    }
    let file = File::open(place).ok()?;
    let found = file.metadata().ok()?;
    let since = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH);
    let modified = since.map_or(0, |since| since.as_nanos() as u64);
    let meta = Meta {
        length: found.len(),
        modified,
    };
    Some((file, meta))
}

/// A request's path relative to the root, written in one way only, so that no file is in the cache
/// twice; none if it names a parent. The root itself stands for its `index.html`.
pub(crate) fn below(path: &str) -> Option<PathBuf> {
    use std::path::Component;
    let path = Path::new(path.strip_prefix('/')?);
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let named = if path.as_os_str().is_empty() {
        Path::new("index.html")
    } else {
        path
    };
    plain.then(|| named.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_the_root_and_has_one_name() {
        let name = |path| below(path).map(|path| path.to_string_lossy().into_owned());
        for same in ["/a/b", "/a//b", "/a/./b", "/a/b/"] {
            assert_eq!(name(same).as_deref(), Some("a/b"), "{same}");
        }
        assert_eq!(name("/").as_deref(), Some("index.html"));
        for wrong in ["/../a", "/a/../b", "//a", "a", ""] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    fn file(bytes: &[u8]) -> (File, Meta) {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("room");
        let meta = Meta {
            length: bytes.len() as u64,
            modified: 7,
        };
        (file, meta)
    }

    fn bytes(cache: &Cache, place: Place) -> Vec<u8> {
        let mut bytes = vec![0; place.meta.length as usize];
        read_bytes(&cache.memory, place.offset as usize / 8, &mut bytes);
        bytes
    }

    #[test]
    fn what_one_copy_reads_another_finds() {
        let one = Cache::create(1 << 20).expect("memory");
        let other = one.share().expect("a handle");
        assert_eq!(other.find("a"), None);
        let text: Vec<u8> = (0..300_001u32).map(|byte| byte as u8).collect();
        let (source, meta) = file(&text);
        let place = one.insert("a", &source, meta).expect("read");
        let place = place.expect("room");
        assert_eq!(other.find("a"), Some(place));
        assert!(bytes(&other, place) == text);
        // Once only, by whomever.
        let again = other.insert("a", &source, meta).expect("read");
        assert_eq!(again, Some(place));
        // What has no room is not there.
        let (large, meta) = file(&vec![1; 900_000]);
        assert_eq!(one.insert("b", &large, meta).expect("read"), None);
        assert_eq!(one.find("b"), None);
        let (small, meta) = file(b"small");
        let place = one.insert("c", &small, meta).expect("read");
        assert_eq!(bytes(&one, place.expect("room")), b"small");
    }

    #[test]
    fn copies_that_read_at_once_share_one_entry() {
        let cache = Cache::create(4 << 20).expect("memory");
        let (source, meta) = file(&[9; 50_000]);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let copy = cache.share().expect("a handle");
                let source = source.try_clone().expect("a handle");
                std::thread::spawn(move || {
                    (0..20)
                        .map(|name| copy.insert(&name.to_string(), &source, meta))
                        .map(|place| place.expect("read").expect("room").offset)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let found: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        assert!(found.iter().all(|one| *one == found[0]));
        let used = cache.word(FREE) - (FIRST + ENTRIES * ENTRY_WORDS) as u64 * 8;
        assert_eq!(used, 20 * (8 + 50_000));
    }

    #[test]
    fn a_file_that_is_no_cache_is_refused() {
        let memory = Mapping::create(64).expect("memory");
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", memory.file().as_raw_fd());
        assert!(Cache::open(Path::new(&path)).is_err());
        let cache = Cache::create(0).expect("memory");
        let path = format!("/proc/self/fd/{}", cache.file().as_raw_fd());
        assert!(Cache::open(Path::new(&path)).is_ok());
    }
}
