//! Files of events: completion channels and asynchronous events.
//!
//! A file is an eventfd that counts the records waiting in it, so it can be polled like any other; the records are here.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::Errno;
use crate::schema::FileKind;

/// A record in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Device file and handle of the object that it is about.
    pub about: (RawFd, u32),
    /// What is read.
    pub bytes: Vec<u8>,
}

/// A file of events.
#[derive(Debug)]
pub struct EventFile {
    /// What it yields.
    pub kind: FileKind,
    /// Device file whose context it belongs to.
    pub owner: RawFd,
    records: VecDeque<Record>,
}

/// All files of events, by descriptor.
#[derive(Debug, Default)]
pub struct EventFiles(BTreeMap<RawFd, EventFile>);

fn borrow(fd: &RawFd) -> BorrowedFd<'_> {
    // SAFETY: descriptors in the table are open until they are taken out of it, and are not -1.
    unsafe { BorrowedFd::borrow_raw(*fd) }
}

impl EventFiles {
    /// Makes a file for the context of the device file `owner`.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn open(&mut self, kind: FileKind, owner: RawFd) -> Result<RawFd, Errno> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?.into_raw_fd();
        self.0.insert(fd, EventFile { kind, owner, records: VecDeque::new() });
        Ok(fd)
    }

    /// Checks that a descriptor is such a file of that context.
    ///
    /// # Errors
    /// EBADF: it is not.
    pub fn check(&self, kind: FileKind, owner: RawFd, fd: u64) -> Result<RawFd, Errno> {
        let fd = RawFd::try_from(fd as i64).map_err(|_| Errno::BADF)?;
        match self.0.get(&fd) {
            Some(file) if file.kind == kind && file.owner == owner => Ok(fd),
            _ => Err(Errno::BADF),
        }
    }

    /// Whether a descriptor is a file of events.
    pub fn contains(&self, fd: RawFd) -> bool {
        self.0.contains_key(&fd)
    }

    /// The file is closed.
    pub fn forget(&mut self, fd: RawFd) -> bool {
        self.0.remove(&fd).is_some()
    }

    /// Descriptors of all files.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.keys().copied()
    }

    /// Number of files that are open.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Puts a record into a file. Nothing happens if it was closed.
    pub fn push(&mut self, fd: RawFd, record: Record) {
        let Some(file) = self.0.get_mut(&fd) else { return };
        file.records.push_back(record);
        // It is full only after 2^64 - 2 records.
        let told = rustix::io::write(borrow(&fd), &1u64.to_ne_bytes());
        debug_assert!(told.is_ok(), "{told:?}");
    }

    /// Takes the next record out of a file whose count was taken down already.
    pub fn take(&mut self, fd: RawFd) -> Option<Record> {
        self.0.get_mut(&fd)?.records.pop_front()
    }

    /// Drops what was not read about an object that is destroyed.
    pub fn drop_about(&mut self, about: (RawFd, u32)) {
        for (fd, file) in &mut self.0 {
            let before = file.records.len();
            file.records.retain(|record| record.about != about);
            for _ in file.records.len()..before {
                let _ = take_count(*fd);
            }
        }
    }
}

/// Takes a file's count down by one; waits for it unless the file is non-blocking.
///
/// # Errors
/// EAGAIN: there is nothing to read. EINTR: a signal came.
pub fn take_count(fd: RawFd) -> Result<(), Errno> {
    let mut count = [0; 8];
    rustix::io::read(borrow(&fd), &mut count).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn readable(fd: RawFd) -> bool {
        let timeout = rustix::event::Timespec::default();
        poll(&mut [PollFd::from_borrowed_fd(borrow(&fd), PollFlags::IN)], Some(&timeout)) == Ok(1)
    }

    #[test]
    fn a_file_is_readable_while_records_wait() {
        let mut files = EventFiles::default();
        let fd = files.open(FileKind::Channel, 7).unwrap();
        assert_eq!(files.check(FileKind::Channel, 7, fd as u64), Ok(fd));
        assert_eq!(files.check(FileKind::Channel, 8, fd as u64), Err(Errno::BADF));
        assert_eq!(files.check(FileKind::AsyncEvents, 7, fd as u64), Err(Errno::BADF));
        let record = |handle, byte| Record { about: (7, handle), bytes: vec![byte] };
        for (handle, byte) in [(1, 10), (2, 20), (1, 30)] {
            files.push(fd, record(handle, byte));
        }
        assert!(readable(fd) && take_count(fd).is_ok());
        assert_eq!(files.take(fd), Some(record(1, 10)));
        files.drop_about((7, 1));
        assert!(readable(fd) && take_count(fd).is_ok());
        assert_eq!(files.take(fd), Some(record(2, 20)));
        assert!(!readable(fd));
        assert!(files.forget(fd) && !files.forget(fd));
        // SAFETY: nobody else has the descriptor.
        unsafe { rustix::io::close(fd) };
    }
}
