//! What the core of the kernel answers to packets that the library's builder cannot send.

use directverbs_linux::error::Error;
use directverbs_linux::objects::{CompletionChannel, CompletionQueue, Context, CqInit, ProtectionDomain};
use directverbs_linux::uverbs::abi::methods::{destroy, object};
use directverbs_linux::uverbs::abi::packet::{Header, RawAttribute, flags};
use directverbs_linux::uverbs::{Kernel, Linux, Uhw};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::context::RXE;
use super::{context, device, kernel, refused};
use crate::check::Check;

/// GET_CONTEXT, QUERY_PORT, INVOKE_WRITE of the device.
const GET_CONTEXT: u16 = 3;
const QUERY_PORT: u16 = 2;
const INVOKE_WRITE: u16 = 0;

pub fn checks() -> Vec<Check> {
    vec![
        Check::of(a_whole_packet_is_taken),
        Check::of(unknown_objects_methods_and_attributes_are_not_supported),
        Check::of(an_unknown_attribute_that_is_not_mandatory_is_passed_over),
        Check::of(values_must_have_the_length_that_the_method_says),
        Check::of(an_attribute_given_twice_or_left_out_is_refused),
        Check::of(reserved_fields_must_be_zero),
        Check::of(counts_and_lengths_must_agree),
        Check::of(another_drivers_id_is_refused),
        Check::of(memory_that_is_not_there_is_a_fault),
        Check::of(commands_that_are_unknown_or_too_short_are_refused),
        Check::of(a_file_without_a_context_takes_no_calls),
        Check::of(a_file_has_one_context),
        Check::of(handles_of_another_context_are_unknown),
    ]
}

/// A packet put together by hand.
#[derive(Clone, Debug)]
pub struct Packet {
    header: Header,
    attributes: Vec<RawAttribute>,
    /// What is added to the count and to the length that the header says.
    lie: (u16, u16),
}

impl Packet {
    pub fn new(object_id: u16, method_id: u16) -> Self {
        let header = Header {
            object_id: object_id.into(),
            method_id: method_id.into(),
            driver_id: RXE.into(),
            ..Header::ZERO
        };
        Self { header, attributes: Vec::new(), lie: (0, 0) }
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, id: u16, len: u16, data: u64) -> &mut Self {
        self.attributes.push(RawAttribute {
            attr_id: id.into(),
            len: len.into(),
            flags: flags::MANDATORY.into(),
            data: data.into(),
            ..RawAttribute::ZERO
        });
        self
    }

    /// Adds a buffer that the kernel fills. It must outlive the call.
    pub fn output<T>(&mut self, id: u16, buffer: &mut T) -> &mut Self {
        self.attribute(id, size_of::<T>() as u16, (&raw mut *buffer).expose_provenance() as u64)
    }

    fn words(&self) -> Vec<u64> {
        let bytes = size_of::<Header>() + size_of_val(self.attributes.as_slice());
        let header = Header {
            length: (bytes as u16).wrapping_add(self.lie.1).into(),
            num_attrs: (self.attributes.len() as u16).wrapping_add(self.lie.0).into(),
            ..self.header
        };
        let mut words = vec![0; bytes / size_of::<u64>()];
        let (head, tail) = words.as_mut_bytes().split_at_mut(size_of::<Header>());
        head.copy_from_slice(header.as_bytes());
        tail.copy_from_slice(self.attributes.as_bytes());
        words
    }
}

/// Sends a packet to the file of a context.
pub fn send(context: &Context, packet: &Packet) -> Result<(), Errno> {
    let mut words = packet.words();
    // SAFETY: the addresses in the packets of these checks are those of buffers that outlive the call, or of no memory at
    // all, which the kernel finds out.
    unsafe { Linux.ioctl(context.file().fd(), &mut words) }
}

fn answer(packet: &Packet) -> Result<(), Errno> {
    send(&context(), packet)
}

/// A call that reads the state of the port.
fn query_port(buffer: &mut [u64; 7]) -> Packet {
    let mut packet = Packet::new(object::DEVICE, QUERY_PORT);
    packet.attribute(0, 8, 1).output(1, buffer);
    packet
}

fn a_whole_packet_is_taken() {
    let mut reply = [0u64; 7];
    assert_eq!(answer(&query_port(&mut reply)), Ok(()));
    assert_ne!(reply, [0; 7]);
}

fn unknown_objects_methods_and_attributes_are_not_supported() {
    for (object_id, method_id) in [(99, 0), (object::DEVICE, 99), (object::DRIVER, 0x1000)] {
        assert_eq!(answer(&Packet::new(object_id, method_id)), Err(Errno::PROTONOSUPPORT));
    }
    let mut reply = [0; 7];
    for id in [9, 0x1002] {
        let mut packet = query_port(&mut reply);
        packet.attribute(id, 4, 0);
        assert_eq!(answer(&packet), Err(Errno::PROTONOSUPPORT), "{id}");
    }
}

fn an_unknown_attribute_that_is_not_mandatory_is_passed_over() {
    let mut reply = [0; 7];
    let mut packet = query_port(&mut reply);
    packet.attribute(9, 4, 0);
    packet.attributes[2].flags = 0.into();
    assert_eq!(answer(&packet), Ok(()));
}

fn values_must_have_the_length_that_the_method_says() {
    let mut reply = [0; 7];
    let cases = [
        // The port's number is a constant of 8 bytes, the reply at least what the first kernel had.
        (0, 4, Errno::INVAL),
        (0, 16, Errno::INVAL),
        (1, 39, Errno::INVAL),
    ];
    for (which, len, errno) in cases {
        let mut packet = query_port(&mut reply);
        packet.attributes[which].len = len.into();
        assert_eq!(answer(&packet), Err(errno), "attribute {which} of {len} bytes");
    }
    // A handle has no length.
    let context = context();
    let pd = ProtectionDomain::alloc(&context, Uhw::none()).expect("a protection domain");
    let mut packet = Packet::new(object::PD, 0);
    packet.attribute(0, 4, pd.handle().into());
    assert_eq!(send(&context, &packet), Err(Errno::INVAL));
    pd.destroy().expect("it is still there");
    // A reply that is longer than this kernel's is filled up with zeros.
    let mut long = [u64::MAX; 9];
    let mut packet = Packet::new(object::DEVICE, QUERY_PORT);
    packet.attribute(0, 8, 1).output(1, &mut long);
    assert_eq!(answer(&packet), Ok(()));
    assert_eq!(long[7..], [0, 0]);
}

fn an_attribute_given_twice_or_left_out_is_refused() {
    let mut reply = [0; 7];
    let mut twice = query_port(&mut reply);
    twice.attribute(0, 8, 1);
    assert_eq!(answer(&twice), Err(Errno::INVAL));
    let mut less = query_port(&mut reply);
    less.attributes.pop();
    assert_eq!(answer(&less), Err(Errno::INVAL));
}

fn reserved_fields_must_be_zero() {
    let mut reply = [0; 7];
    let mut packet = query_port(&mut reply);
    packet.header.reserved1 = 1.into();
    assert_eq!(answer(&packet), Err(Errno::PROTONOSUPPORT));
    let mut packet = query_port(&mut reply);
    packet.header.reserved2 = 1.into();
    assert_eq!(answer(&packet), Err(Errno::PROTONOSUPPORT));
    let mut packet = query_port(&mut reply);
    packet.attributes[0].reserved = 1.into();
    assert_eq!(answer(&packet), Err(Errno::INVAL));
}

fn counts_and_lengths_must_agree() {
    let mut reply = [0; 7];
    for lie in [(1, 0), (u16::MAX, 0), (0, 16), (0, 1), (0, u16::MAX)] {
        let packet = Packet { lie, ..query_port(&mut reply) };
        assert_eq!(answer(&packet), Err(Errno::INVAL), "{lie:?}");
    }
}

fn another_drivers_id_is_refused() {
    let mut reply = [0; 7];
    let mut packet = query_port(&mut reply);
    packet.header.driver_id = (RXE + 1).into();
    assert_eq!(answer(&packet), Err(Errno::INVAL));
}

fn memory_that_is_not_there_is_a_fault() {
    let mut packet = Packet::new(object::DEVICE, QUERY_PORT);
    packet.attribute(0, 8, 1).attribute(1, 56, 0x1000);
    assert_eq!(answer(&packet), Err(Errno::FAULT));
}

fn commands_that_are_unknown_or_too_short_are_refused() {
    let invoke = |number: u64| {
        let mut packet = Packet::new(object::DEVICE, INVOKE_WRITE);
        packet.attribute(2, 8, number);
        packet
    };
    assert_eq!(answer(&invoke(3)), Err(Errno::NOSPC), "ALLOC_PD without its reply");
    for number in [0x7f, 0x8000_0000 | 0x7f] {
        assert_eq!(answer(&invoke(number)), Err(Errno::OPNOTSUPP), "{number:#x}");
    }
}

fn a_file_without_a_context_takes_no_calls() {
    let kernel = kernel();
    let fd = kernel.open(&device().path()).expect("it opens");
    let mut reply = [0; 7];
    let mut words = query_port(&mut reply).words();
    // SAFETY: as in `send`.
    let answer = unsafe { kernel.ioctl(fd, &mut words) };
    kernel.close(fd);
    assert_eq!(answer, Err(Errno::INVAL));
}

fn a_file_has_one_context() {
    let (mut vectors, mut support) = (0u32, 0u64);
    let mut packet = Packet::new(object::DEVICE, GET_CONTEXT);
    packet.output(0, &mut vectors).output(1, &mut support);
    assert_eq!(answer(&packet), Err(Errno::INVAL));
}

fn handles_of_another_context_are_unknown() {
    let (one, other) = (context(), context());
    let pd = ProtectionDomain::alloc(&one, Uhw::none()).expect("a protection domain");
    refused(other.file().destroy(&destroy::PD, pd.handle()), Errno::NOENT);
    // The library does not even ask.
    let channel = CompletionChannel::create(&other).expect("a channel");
    let init = CqInit { cqe: 1, channel: Some(&channel), ..CqInit::default() };
    let error = CompletionQueue::create(&one, &init, Uhw::none()).expect_err("it belongs to the other");
    assert!(matches!(error, Error::OtherContext { .. }), "{error}");
}
