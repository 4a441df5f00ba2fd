//! The daemon as a client meets it: a vfio-user client in place of QEMU.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use directverbs_softnic::pci::Copier;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_BAR0_REGION_INDEX,
    VFIO_PCI_BAR2_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
};
use vfio_user::Client;

const BAR0: u32 = VFIO_PCI_BAR0_REGION_INDEX;
const CONFIG: u32 = VFIO_PCI_CONFIG_REGION_INDEX;
const MEMORY: u64 = 0x1_0000_0000;

/// A daemon that ends with the test.
struct Daemon {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Daemon {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_softnicd"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("a daemon");
        let mut daemon = Self { output: BufReader::new(child.stdout.take().unwrap()), child };
        assert_eq!(daemon.line(), "listening");
        daemon
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().into()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client with a page of memory and one interrupt.
struct Guest {
    client: Client,
    memory: File,
    event: File,
}

impl Guest {
    fn connect(socket: &Path) -> Self {
        let mut client = Client::new(socket).expect("a connection");
        let memory = tempfile::tempfile().unwrap();
        memory.set_len(0x2000).unwrap();
        client.dma_map(0x1000, MEMORY, 0x1000, memory.as_raw_fd()).unwrap();
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK) };
        assert!(fd >= 0);
        // SAFETY: the descriptor was just opened, and is nobody else's.
        let event = unsafe { File::from_raw_fd(fd) };
        let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
        client.set_irqs(VFIO_PCI_MSIX_IRQ_INDEX, flags, 0, 1, &[fd]).unwrap();
        // Memory accesses and bus mastering.
        client.region_write(CONFIG, 4, &[6, 0]).unwrap();
        Self { client, memory, event }
    }

    fn copy(&mut self, number: u64) {
        let values = [(Copier::SOURCE, MEMORY), (Copier::DESTINATION, MEMORY + 64), (Copier::LENGTH, 16)];
        for (register, value) in values.into_iter().chain([(Copier::DOORBELL, number)]) {
            self.client.region_write(BAR0, register as u64, &value.to_le_bytes()).unwrap();
        }
    }

    fn read<const N: usize>(&mut self, region: u32, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.client.region_read(region, offset, &mut bytes).unwrap();
        bytes
    }

    fn interrupts(&mut self) -> u64 {
        let mut count = [0; 8];
        self.event.read_exact(&mut count).map_or(0, |()| u64::from_ne_bytes(count))
    }
}

#[test]
fn a_client_finds_the_function_and_its_bars() {
    let dir = tempfile::tempdir().unwrap();
    let sockets = ["a", "b"].map(|name| dir.path().join(name));
    let nics = sockets.each_ref().map(|path| format!("copier={}", path.display()));
    let _daemon = Daemon::start(&["--nic", &nics[0], "--nic", &nics[1]]);
    for socket in &sockets {
        let mut guest = Guest::connect(socket);
        let id = u32::from_le_bytes(guest.read(CONFIG, 0));
        assert_eq!(id, u32::from(Copier::DEVICE) << 16 | u32::from(Copier::VENDOR));
        let len = |guest: &Guest, region| guest.client.region(region).map(|region| region.size);
        assert_eq!(len(&guest, VFIO_PCI_BAR2_REGION_INDEX), Some(Copier::MEMORY));
        assert_eq!(len(&guest, CONFIG), Some(4096));
        assert_eq!(guest.client.get_irq_info(VFIO_PCI_MSIX_IRQ_INDEX).unwrap().count, 2);
        // Sizing of BAR 0.
        guest.client.region_write(CONFIG, 0x10, &[0xff; 4]).unwrap();
        assert_eq!(u32::from_le_bytes(guest.read(CONFIG, 0x10)), 0xffff_000c);
    }
}

#[test]
fn a_copy_reaches_the_guests_memory_and_interrupts_it() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nic");
    let nic = format!("copier={}", socket.display());
    let mut daemon = Daemon::start(&["--nic", &nic, "--trace"]);
    let mut guest = Guest::connect(&socket);
    guest.memory.write_all_at(&[5; 16], 0x1000).unwrap();
    guest.copy(0x77);
    let mut bytes = [0; 24];
    guest.memory.read_exact_at(&mut bytes, 0x1040).unwrap();
    assert_eq!((&bytes[..16], bytes[16]), (&[5; 16][..], 0x77));
    assert_eq!(guest.interrupts(), 1);
    assert_eq!(daemon.line(), format!("{nic}: copy 16 bytes from 0x100000000 to 0x100000040, number 119"));

    guest.client.reset().unwrap();
    assert_eq!(guest.read::<8>(BAR0, Copier::COPIES as u64), [0xff; 8], "memory accesses are off");
    guest.client.region_write(CONFIG, 4, &[2, 0]).unwrap();
    guest.copy(1);
    assert_eq!((guest.read::<8>(BAR0, Copier::COPIES as u64), guest.interrupts()), ([0; 8], 0));
}

#[test]
fn the_next_client_finds_the_device_as_new() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nic");
    let nic = format!("copier={}", socket.display());
    let daemon = Daemon::start(&["--nic", &nic]);
    for _ in 0..3 {
        let mut guest = Guest::connect(&socket);
        assert_eq!(guest.read::<8>(BAR0, Copier::SOURCE as u64), [0; 8]);
        guest.copy(1);
        assert_eq!(guest.read::<8>(BAR0, Copier::COPIES as u64), [1, 0, 0, 0, 0, 0, 0, 0]);
    }
    // A daemon that was killed leaves its socket.
    drop(daemon);
    assert!(socket.exists());
    let _daemon = Daemon::start(&["--nic", &nic]);
    Guest::connect(&socket).copy(1);
}

#[test]
fn faults_are_planned_on_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nic");
    let nic = format!("copier={}", socket.display());
    let _daemon = Daemon::start(&["--nic", &nic, "--fault-plan", "command=1:silent"]);
    let mut guest = Guest::connect(&socket);
    let mut copies = || {
        guest.copy(1);
        u64::from_le_bytes(guest.read(BAR0, Copier::COPIES as u64))
    };
    assert_eq!([copies(), copies(), copies()], [1, 1, 2]);
}

#[test]
fn what_cannot_be_served_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let nic = format!("copier={}", dir.path().join("nic").display());
    let busy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wire = format!("udp:{},127.0.0.1:9", busy.local_addr().unwrap());
    let file = dir.path().join("file");
    File::create(&file).unwrap();
    let taken = format!("copier={}", file.display());
    let cases: [(&[&str], &str); 4] = [
        (&["--nic", &nic, "--wire", &wire], "Address already in use"),
        (&["--nic", &nic, "--wire", "if:nothere0"], "if:nothere0: No such device"),
        (&["--nic", &taken], "Socket path already exists"),
        (&["--nic", "mlx5=x"], "not KIND=SOCKET"),
    ];
    for (arguments, why) in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_softnicd")).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(why), "{arguments:?}: {text}");
    }
}
