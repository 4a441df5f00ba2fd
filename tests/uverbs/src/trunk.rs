//! The wire between machines of different processes: a folder with a datagram socket for each device, named after its
//! Ethernet address. A datagram is a frame.

use std::fmt;
use std::io::{ErrorKind, Result};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use directverbs::verbs::Mac;
use directverbs_softnic::fabric::Fabric;

use crate::profile::Profile;

/// Longest frame.
const LONGEST: usize = 16384;
/// How long a thread waits for a frame before it looks whether it shall end.
const NAP: Duration = Duration::from_millis(50);

/// A machine's end of the wire. Its sockets go with it.
pub struct Trunk {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    sockets: Vec<PathBuf>,
}

impl fmt::Debug for Trunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trunk").field("sockets", &self.sockets).finish_non_exhaustive()
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

impl Trunk {
    /// Joins the wire in `folder` with the devices of a machine.
    ///
    /// # Errors
    /// A socket cannot be made: another process may have a device in the same place.
    pub fn join(folder: &Path, profiles: &[Profile], fabric: &Fabric) -> Result<Self> {
        let mut trunk = Self { stop: Arc::default(), threads: Vec::new(), sockets: Vec::new() };
        let sender = UnixDatagram::unbound()?;
        sender.set_nonblocking(true)?;
        let to = folder.to_owned();
        fabric.set_uplink(Box::new(move |frame| {
            if let Some(mac) = frame.first_chunk() {
                // Nobody there, or no room: the frame is lost, as on any wire.
                let _ = sender.send_to(frame, socket(&to, Mac(*mac)));
            }
        }));
        for profile in profiles {
            let path = socket(folder, profile.mac());
            let receiver = bind(&path)?;
            trunk.sockets.push(path);
            receiver.set_read_timeout(Some(NAP))?;
            let (stop, fabric) = (trunk.stop.clone(), fabric.clone());
            trunk.threads.push(std::thread::spawn(move || {
                let mut frame = vec![0; LONGEST];
                while !stop.load(Ordering::Acquire) {
                    if let Ok(len) = receiver.recv(&mut frame) {
                        fabric.arrive(frame.get(..len).unwrap_or_default().to_vec());
                    }
                }
            }));
        }
        Ok(trunk)
    }
}

impl Drop for Trunk {
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
