//! The way from a wire to what is not on it: frames to addresses that nobody there has.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::fabric::Waker;

/// Frames that wait to enter a wire from outside.
type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// Frames kept for a wire that does not take them: more are lost, as on any line.
const BACKLOG: usize = 4096;

/// The end of an uplink outside: brings frames to the wire. Clones share it.
#[derive(Clone, Debug)]
pub struct Uplink {
    queue: Queue,
    waker: Waker,
}

impl Uplink {
    /// Brings a frame to the wire; `false` if it was lost because too many wait.
    pub fn deliver(&self, frame: &[u8]) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = queue.len() < BACKLOG;
        if fits {
            queue.push_back(frame.to_vec());
        }
        drop(queue);
        self.waker.wake();
        fits
    }
}

/// The end of an uplink at the wire.
pub(crate) struct Station {
    queue: Queue,
    send: Box<dyn FnMut(&[u8]) + Send>,
}

impl Station {
    /// Both ends; `send` takes frames that leave the wire.
    pub fn new(waker: Waker, send: Box<dyn FnMut(&[u8]) + Send>) -> (Self, Uplink) {
        let queue = Queue::default();
        (Self { queue: queue.clone(), send }, Uplink { queue, waker })
    }
}

impl crate::fabric::Station for Station {
    fn receive(&mut self, frame: &[u8]) {
        (self.send)(frame);
    }

    fn step(&mut self) -> bool {
        false
    }

    fn has_frame(&self) -> bool {
        !self.queue.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take_frame(&mut self) -> Option<Vec<u8>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn next_timer(&self) -> Option<u64> {
        None
    }
}
