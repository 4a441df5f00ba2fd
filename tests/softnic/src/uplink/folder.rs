//! An uplink to any process of this machine: a folder with a datagram socket for each NIC, named after its Ethernet
//! address. A datagram is a frame.

use std::io::{ErrorKind, Result};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use directverbs::verbs::Mac;

use super::{Inlet, Outlet, Uplink};

/// Longest frame.
const LONGEST: usize = 16384;
/// How long a thread waits for a frame before it looks whether it shall end.
const NAP: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Out {
    from: UnixDatagram,
    folder: PathBuf,
}

impl Outlet for Out {
    /// Nobody there, or no room: the frame is lost, as on any wire.
    fn send(&mut self, frame: &[u8]) -> bool {
        let to = frame.first_chunk();
        to.is_some_and(|mac| self.from.send_to(frame, socket(&self.folder, Mac(*mac))).is_ok())
    }

    fn waiting(&self) -> usize {
        0
    }
}

/// The threads that receive. Their sockets go with them.
#[derive(Debug, Default)]
struct Threads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    sockets: Vec<PathBuf>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // It has nothing to say.
            let _ = thread.join();
        }
        for socket in &self.sockets {
            // The folder may be gone already.
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn socket(folder: &Path, mac: Mac) -> PathBuf {
    folder.join(mac.to_string())
}

/// Makes a socket, also where a process that is gone has left one.
fn bind(path: &Path) -> Result<UnixDatagram> {
    match UnixDatagram::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let asked = UnixDatagram::unbound()?.connect(path);
            if asked.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                std::fs::remove_file(path)?;
                return UnixDatagram::bind(path);
            }
            Err(error)
        }
        bound => bound,
    }
}

/// Leads out to all whose sockets are in the folder `at`, and puts those of this wire's NICs there.
///
/// # Errors
/// A socket cannot be made: another process may have a NIC of the same address.
pub fn folder(at: &Path, inlet: &Inlet) -> Result<Uplink> {
    let from = UnixDatagram::unbound()?;
    from.set_nonblocking(true)?;
    let mut receiving = Threads::default();
    for mac in inlet.macs() {
        let path = socket(at, *mac);
        let receiver = bind(&path)?;
        receiving.sockets.push(path);
        receiver.set_read_timeout(Some(NAP))?;
        let (stop, inlet) = (receiving.stop.clone(), inlet.clone());
        receiving.threads.push(std::thread::spawn(move || {
            let mut frame = vec![0; LONGEST];
            while !stop.load(Ordering::Acquire) {
                if let Ok(len) = receiver.recv(&mut frame) {
                    inlet.arrive(frame.get(..len).unwrap_or_default().to_vec());
                }
            }
        }));
    }
    Ok(Uplink::new(Out { from, folder: at.to_owned() }, receiving))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_while_its_process_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("place");
        let socket = bind(&path).unwrap();
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(socket);
        assert!(path.exists() && bind(&path).is_ok());
    }
}
