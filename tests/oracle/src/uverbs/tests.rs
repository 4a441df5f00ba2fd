//! The device through the descriptor, as a library uses it, without the library.

use std::ffi::{CString, c_int};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use zerocopy::IntoBytes;

use super::abi::{CreateQp, EXTENDED, IoctlAttribute, IoctlHeader, RDMA_VERBS_IOCTL, command};
use super::{Config, Device, Errno, Family, Page, QpCap, Traps, bnxt_re, ionic, registry, trap};

/// A context, opened as any program opens a file: the standard library's `open` is ours in this program.
struct Opened {
    file: File,
    device: Device,
}

/// Configurations are for the next context of a family, and tests run side by side.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn open(config: impl Into<Config>) -> Opened {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    registry::install();
    let config = config.into();
    let path = format!("/dev/infiniband/{}", config.family().device_name());
    registry::configure(config);
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let device = registry::device(file.as_raw_fd()).unwrap();
    Opened { file, device }
}

fn errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

impl Opened {
    /// A plain command; the reply's address goes before `request`.
    fn write(&self, number: u32, request: &[u8], reply: &mut [u8]) -> Result<(), Errno> {
        let mut bytes = number.to_ne_bytes().to_vec();
        let words = ((8 + 8 + request.len()) / 4) as u16;
        bytes.extend_from_slice(&words.to_ne_bytes());
        bytes.extend_from_slice(&((reply.len() / 4) as u16).to_ne_bytes());
        bytes.extend_from_slice(&(reply.as_mut_ptr() as u64).to_ne_bytes());
        bytes.extend_from_slice(request);
        self.send(&bytes)
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Errno> {
        // SAFETY: the bytes are there; the reply's address in them is the caller's.
        let written = unsafe { libc::write(self.file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        if written == bytes.len() as isize { Ok(()) } else { Err(errno()) }
    }

    fn ioctl(&self, object: u16, method: u16, attributes: &mut [IoctlAttribute]) -> Result<(), Errno> {
        let header = IoctlHeader {
            length: (24 + 16 * attributes.len()) as u16,
            object,
            method,
            attributes: attributes.len() as u16,
            driver: self.device.config().family().driver_id(),
            ..IoctlHeader::default()
        };
        let mut words: Vec<u64> = vec![0; (24 + 16 * attributes.len()) / 8];
        words.as_mut_bytes()[..24].copy_from_slice(header.as_bytes());
        words.as_mut_bytes()[24..].copy_from_slice(attributes.as_bytes());
        let fd = self.file.as_raw_fd();
        // SAFETY: header and attributes are there; the addresses in them are the caller's.
        let done = unsafe { libc::ioctl(fd, RDMA_VERBS_IOCTL, words.as_mut_ptr()) };
        attributes.as_mut_bytes().copy_from_slice(&words.as_bytes()[24..]);
        if done == 0 { Ok(()) } else { Err(errno()) }
    }

    fn mmap(&self, prot: c_int, offset: u64) -> Result<*mut u8, Errno> {
        let (null, fd) = (std::ptr::null_mut(), self.file.as_raw_fd());
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(null, 4096, prot, libc::MAP_SHARED, fd, offset as i64) };
        if at == libc::MAP_FAILED { Err(errno()) } else { Ok(at.cast()) }
    }

    /// Context, protection domain and completion queue of bnxt_re by write().
    fn begin(&self) -> (u32, u32) {
        let mut context = [0; 8 + 48];
        self.write(command::GET_CONTEXT, &3u64.to_ne_bytes(), &mut context).unwrap();
        let mut pd = [0u32; 5];
        self.write(command::ALLOC_PD, &[], pd.as_mut_bytes()).unwrap();
        let mut cq = [0u32; 8];
        let asked = [0u64, 100, u64::from(u32::MAX), 0x7000, 0x8000, 0];
        self.write(command::CREATE_CQ, asked.as_bytes(), cq.as_mut_bytes()).unwrap();
        (pd[0], cq[0])
    }
}

const fn put(id: u16, data: u64) -> IoctlAttribute {
    IoctlAttribute { id, len: 8, flags: 1, extra: 0, data }
}

fn place(id: u16, bytes: &mut [u8]) -> IoctlAttribute {
    IoctlAttribute { id, len: bytes.len() as u16, flags: 1, extra: 0, data: bytes.as_mut_ptr() as u64 }
}

#[test]
fn only_our_names_are_devices() {
    for (path, is) in
        [("/dev/infiniband/dv_ionic", true), ("/dev/infiniband/uverbs0", false), ("/dev/null", false)]
    {
        assert_eq!(registry::is_device(&CString::new(path).unwrap()), is, "{path}");
    }
    assert!(std::fs::read_to_string("/proc/self/comm").is_ok(), "other files are read as ever");
}

#[test]
fn a_descriptor_is_ours_until_it_is_closed() {
    let Opened { file, device } = open(ionic::Config::default());
    let fd = file.as_raw_fd();
    assert!(registry::device(fd).is_some());
    drop(file);
    assert!(registry::device(fd).is_none());
    assert_eq!(device.config().family(), Family::Ionic);
}

#[test]
fn a_queue_pair_is_the_same_by_write_and_by_ioctl() {
    let cap = QpCap { max_send_wr: 9, max_recv_wr: 8, max_send_sge: 2, max_recv_sge: 1, max_inline_data: 16 };
    let udata = bnxt_re::QpReq {
        qpsva: 0x1000,
        qprva: 0x2000,
        qp_handle: 0x3000,
        sq_slots: 64,
        ..Default::default()
    };
    let by_write = open(bnxt_re::Config::p7());
    let (pd, cq) = by_write.begin();
    let asked = CreateQp {
        user_handle: 0x55,
        pd,
        send_cq: cq,
        recv_cq: cq,
        max_send_wr: 9,
        max_recv_wr: 8,
        max_send_sge: 2,
        max_recv_sge: 1,
        max_inline_data: 16,
        qp_type: 2,
        sq_sig_all: 1,
        ..CreateQp::default()
    };
    let request = [asked.as_bytes(), udata.as_bytes()].concat();
    let mut reply = [0u32; 10];
    by_write.write(command::CREATE_QP, &request, reply.as_mut_bytes()).unwrap();

    let by_ioctl = open(bnxt_re::Config::p7());
    let (pd, cq) = by_ioctl.begin();
    let mut caps = [9u32, 8, 2, 1, 16];
    let (mut udata_bytes, mut answer) = (udata.as_bytes().to_vec(), [0u32; 2]);
    let mut attributes = [
        put(0, 0),
        put(2, pd.into()),
        put(4, cq.into()),
        put(5, cq.into()),
        put(7, 0x55),
        place(8, caps.as_mut_bytes()),
        put(9, 2),
        put(10, 1 << 12),
        place(0x1000, &mut udata_bytes),
        place(0x1001, answer.as_mut_bytes()),
    ];
    by_ioctl.ioctl(4, 0, &mut attributes).unwrap();

    let (one, other) = (by_write.device.qp(reply[0]), by_ioctl.device.qp(attributes[0].data as u32));
    assert_eq!(one, other);
    assert_eq!((one.cap, one.udata.get::<bnxt_re::QpReq>(), one.signal_all), (cap, udata, true));
    assert_eq!((reply[1], reply[8], answer[0]), (one.id, one.id, one.id));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_doorbell_is_logged_and_a_kernel_page_is_read_only() {
    let opened = open(bnxt_re::Config::p7());
    opened.begin();
    let mut toggle = (0u64, [0u32; 2]);
    let mut attributes = [
        put(0x1000, 0),
        put(0x1001, 0),
        put(0x1002, 7),
        place(0x1003, toggle.0.as_mut_bytes()),
        place(0x1004, toggle.1[..1].as_mut_bytes()),
        place(0x1005, toggle.1[1..].as_mut_bytes()),
    ];
    opened.ioctl(0x1002, 0x1000, &mut attributes).unwrap();
    assert_eq!(toggle.1, [0, 4096]);
    assert_eq!(opened.mmap(libc::PROT_READ | libc::PROT_WRITE, toggle.0), Err(libc::EFAULT));
    let page = opened.mmap(libc::PROT_READ, toggle.0).unwrap();
    opened.device.write_page(Page::CqToggle(7), 0, &3u32.to_ne_bytes());
    // SAFETY: the page is mapped.
    assert_eq!(unsafe { page.cast::<u32>().read_volatile() }, 3);

    let mut pd = [0u32; 5];
    opened.write(command::ALLOC_PD, &[], pd.as_mut_bytes()).unwrap();
    let doorbell = u64::from(pd[3]) | u64::from(pd[4]) << 32;
    let page = opened.mmap(libc::PROT_WRITE, doorbell).unwrap();
    // SAFETY: the page is mapped.
    unsafe { page.add(8).cast::<u64>().write_volatile(0x1234) };
    let stores = opened.device.take_stores();
    assert_eq!(stores.len(), 1);
    assert_eq!((stores[0].page, stores[0].offset, stores[0].value()), (Page::Doorbell, 8, 0x1234));
    assert_eq!(opened.device.read_u64(Page::Doorbell, 8), 0x1234);
    assert_eq!(opened.mmap(libc::PROT_READ, 0xdead_0000), Err(libc::EINVAL));
}

#[test]
fn without_traps_pages_are_plain_memory() {
    let opened = open(Config { traps: Traps::NONE, ..ionic::Config::default().into() });
    let mut context = [0; 8 + 40];
    opened.write(command::GET_CONTEXT, &[0; 8], &mut context).unwrap();
    let page = opened.mmap(libc::PROT_WRITE, 0).unwrap();
    // SAFETY: the page is mapped.
    unsafe { page.add(0x18).cast::<u64>().write_volatile(9) };
    assert_eq!(opened.device.take_stores(), []);
    assert_eq!(opened.device.read_u64(Page::Doorbell, 0x18), 9);
    trap::forget(page as usize, 4096);
}

#[test]
fn commands_that_are_too_short_or_unknown_are_refused() {
    let opened = open(bnxt_re::Config::p7());
    let (pd, cq) = opened.begin();
    assert_eq!(opened.send(&[]), Err(libc::EINVAL));
    assert_eq!(opened.send(&[3, 0, 0, 0]), Err(libc::EINVAL));
    for number in [command::CREATE_QP, command::REG_MR, command::RESIZE_CQ, command::MODIFY_QP] {
        assert_eq!(opened.write(number, &[0; 4], &mut [0; 64]), Err(libc::EINVAL), "{number}");
    }
    assert_eq!(opened.write(200, &[], &mut []), Err(libc::EOPNOTSUPP));
    let extended = [u64::from(EXTENDED | 200), 0, 0];
    assert_eq!(opened.send(extended.as_bytes()), Err(libc::EOPNOTSUPP));
    assert_eq!(opened.ioctl(100, 0, &mut []), Err(libc::EPROTONOSUPPORT));
    assert_eq!(opened.ioctl(4, 0, &mut [put(2, pd.into())]), Err(libc::EINVAL));
    // What is in use stays.
    let qp = CreateQp { pd, send_cq: cq, recv_cq: cq, qp_type: 2, ..CreateQp::default() };
    let mut reply = [0u32; 10];
    opened.write(command::CREATE_QP, &[qp.as_bytes(), &[0; 40]].concat(), reply.as_mut_bytes()).unwrap();
    let cq_then = [cq, 0];
    assert_eq!(opened.write(command::DESTROY_CQ, cq_then.as_bytes(), &mut [0; 8]), Err(libc::EBUSY));
    let unknown = CreateQp { pd: 999, ..qp };
    let request = [unknown.as_bytes(), &[0; 40]].concat();
    assert_eq!(opened.write(command::CREATE_QP, &request, reply.as_mut_bytes()), Err(libc::EINVAL));
}

#[test]
fn a_ring_that_the_ionic_kernel_would_refuse_is_refused() {
    let opened = open(ionic::Config::default());
    let mut context = [0; 8 + 40];
    opened.write(command::GET_CONTEXT, &[0; 8], &mut context).unwrap();
    let good = ionic::Qdesc { addr: 0x1000, size: 4096, mask: 127, depth_log2: 7, stride_log2: 5 };
    let create = |ring: ionic::Qdesc| {
        let udata = ionic::CqReq { cq: [ring, ionic::Qdesc::default()], udma_mask: 1, rsvd: [0; 7] };
        let asked = [0u64, 100, u64::from(u32::MAX)];
        opened.write(command::CREATE_CQ, &[asked.as_bytes(), udata.as_bytes()].concat(), &mut [0; 24])
    };
    assert_eq!(create(good), Ok(()));
    let bad = [
        ionic::Qdesc { addr: 0x1008, ..good },
        ionic::Qdesc { mask: 126, ..good },
        ionic::Qdesc { size: 4095, ..good },
        ionic::Qdesc { depth_log2: 0, mask: 0, ..good },
    ];
    for ring in bad {
        assert_eq!(create(ring), Err(libc::EINVAL), "{ring:?}");
    }
}
