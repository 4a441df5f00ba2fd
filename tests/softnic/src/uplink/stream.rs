//! An uplink to one other process: frames over TCP, each behind its length in two bytes, the more significant first.
//!
//! TCP loses nothing and holds back who sends too fast, so a wire is as good between processes as inside of one; what is
//! to go wrong is planned, here too.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Inlet, Outlet, Uplink};

/// How long the other end may take nothing before it counts as gone.
const STUCK: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Out {
    frames: Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

impl Outlet for Out {
    fn send(&mut self, frame: &[u8]) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let taken = self.frames.send(frame.to_vec()).is_ok();
        if !taken {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Threads {
    stream: TcpStream,
    writer: Option<JoinHandle<()>>,
    reader: Option<JoinHandle<()>>,
}

impl Drop for Threads {
    /// Ends them after what was sent has left.
    fn drop(&mut self) {
        drop(self.writer.take().map(JoinHandle::join));
        drop(self.stream.shutdown(Shutdown::Both));
        drop(self.reader.take().map(JoinHandle::join));
    }
}

/// Leads out over `stream`; the process at its other end does the same.
///
/// # Errors
/// The stream cannot be used.
pub fn stream(stream: TcpStream, inlet: Inlet) -> io::Result<Uplink> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(STUCK))?;
    stream.set_read_timeout(None)?;
    let (to, from) = (stream.try_clone()?, stream.try_clone()?);
    let (frames, leaving) = channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let out = Out { frames, waiting: waiting.clone() };
    // Either thread ends when its end of the stream does; then the other end is gone, and nothing arrives any more.
    let writer = Some(std::thread::spawn(move || drop(carry(to, &leaving, &waiting))));
    let reader = Some(std::thread::spawn(move || drop(take(from, &inlet))));
    Ok(Uplink::new(out, Threads { stream, writer, reader }))
}

/// Writes frames until there is nobody who sends any.
fn carry(stream: TcpStream, leaving: &Receiver<Vec<u8>>, waiting: &AtomicUsize) -> io::Result<()> {
    let mut out = BufWriter::new(stream);
    while let Ok(frame) = leaving.recv() {
        let mut next = Some(frame);
        while let Some(frame) = next {
            // No frame is that long; one that was would be lost, as on any wire.
            if let Ok(length) = u16::try_from(frame.len()) {
                out.write_all(&length.to_be_bytes())?;
                out.write_all(&frame)?;
            }
            waiting.fetch_sub(1, Ordering::Relaxed);
            next = leaving.try_recv().ok();
        }
        out.flush()?;
    }
    Ok(())
}

/// Reads frames until the other end is gone.
fn take(stream: TcpStream, inlet: &Inlet) -> io::Result<()> {
    let mut from = BufReader::new(stream);
    loop {
        let mut length = [0; 2];
        from.read_exact(&mut length)?;
        let mut frame = vec![0; u16::from_be_bytes(length).into()];
        from.read_exact(&mut frame)?;
        inlet.arrive(frame);
    }
}
