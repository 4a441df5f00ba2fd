//! A packet for `ioctl`.
//!
//! Attributes are typed, the number of attributes is that of the list, and values are copied from types without padding:
//! a wrong count, a wrong length and uninitialised bytes cannot be sent. Whether all attributes are there that the method
//! needs is checked before the call.

use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::abi::attribute::{
    Attribute, Constant, File, Handle, HasKind, Input, InputBytes, Method, NewFile, NewHandle, Output,
    OutputBytes,
};
use super::abi::methods::object::DRIVER;
use super::abi::packet::{Header, RawAttribute, flags};
use super::kernel::Fd;
use crate::error::{Error, Result};

/// Bytes that fit the data field itself.
const INLINE: usize = 8;
/// Bytes of a value or buffer at most: the length is a field of 16 bits.
const LONGEST: usize = u16::MAX as usize;
/// Bytes of a packet at most: the kernel takes one page.
const PACKET: usize = 4096;

/// A call of a method, being put together. Buffers stay borrowed until it is sent.
#[derive(Debug)]
#[must_use]
pub struct Call<'a> {
    method: &'static Method,
    attributes: Vec<RawAttribute>,
    /// First attribute that cannot be sent, and why.
    fault: Option<(&'static str, &'static str)>,
    buffers: PhantomData<&'a mut [u8]>,
}

impl<'a> Call<'a> {
    /// A call of `method`, without attributes yet.
    pub fn new(method: &'static Method) -> Self {
        Self { method, attributes: Vec::with_capacity(16), fault: None, buffers: PhantomData }
    }

    /// Names an object.
    pub fn handle(&mut self, attribute: Attribute<Handle>, handle: u32) -> &mut Self {
        self.push(attribute, 0, handle.into())
    }

    /// Asks for an object: [`Answer::handle`] is its handle.
    pub fn new_handle(&mut self, attribute: Attribute<NewHandle>) -> &mut Self {
        self.push(attribute, 0, 0)
    }

    /// Names a file of the context.
    pub fn file(&mut self, attribute: Attribute<File>, fd: Fd) -> &mut Self {
        self.push(attribute, 0, fd.get() as u64)
    }

    /// Asks for a file: [`Answer::file`] is its descriptor.
    pub fn new_file(&mut self, attribute: Attribute<NewFile>) -> &mut Self {
        self.push(attribute, 0, 0)
    }

    /// Gives a number.
    pub fn constant(&mut self, attribute: Attribute<Constant>, value: u64) -> &mut Self {
        self.push(attribute, size_of::<u64>(), value)
    }

    /// Gives a value of at most 8 bytes.
    pub fn value<T: IntoBytes + Immutable>(&mut self, attribute: Attribute<Input<T>>, value: T) -> &mut Self {
        const { assert!(size_of::<T>() <= INLINE, "longer values are borrowed: `input`") };
        self.push(attribute, size_of::<T>(), inline(value.as_bytes()))
    }

    /// Gives a value.
    pub fn input<T: IntoBytes + Immutable>(
        &mut self,
        attribute: Attribute<Input<T>>,
        value: &'a T,
    ) -> &mut Self {
        self.push_input(attribute, value.as_bytes())
    }

    /// Gives bytes; none at all means that the attribute is left out.
    pub fn input_bytes(&mut self, attribute: Attribute<InputBytes>, bytes: &'a [u8]) -> &mut Self {
        if bytes.is_empty() { self } else { self.push_input(attribute, bytes) }
    }

    /// Gives a buffer that the kernel fills.
    pub fn output<T: IntoBytes + FromBytes>(
        &mut self,
        attribute: Attribute<Output<T>>,
        buffer: &'a mut T,
    ) -> &mut Self {
        self.push_output(attribute, buffer.as_mut_bytes())
    }

    /// Gives a buffer that the kernel fills; none at all means that the attribute is left out.
    pub fn output_bytes(&mut self, attribute: Attribute<OutputBytes>, buffer: &'a mut [u8]) -> &mut Self {
        if buffer.is_empty() { self } else { self.push_output(attribute, buffer) }
    }

    /// Lets a kernel that does not know the attribute given last go on without it.
    pub fn advisory(&mut self) -> &mut Self {
        if let Some(last) = self.attributes.last_mut() {
            last.flags.set(last.flags.get() & !flags::MANDATORY);
        }
        self
    }

    /// The method.
    pub fn method(&self) -> &'static Method {
        self.method
    }

    /// The packet's words, for the driver `driver_id`.
    ///
    /// # Errors
    /// An attribute is missing, given twice, not the method's, or too long.
    pub(super) fn packet(&self, driver_id: u32) -> Result<Vec<u64>> {
        let refuse = |attribute, what| {
            let Method { object, name, .. } = self.method;
            Err(Error::Packet { object, method: name, attribute, what })
        };
        if let Some((attribute, what)) = self.fault {
            return refuse(attribute, what);
        }
        let given = |id| self.attributes.iter().any(|a| a.attr_id.get() == id);
        if let Some(missing) = self.method.attributes.iter().find(|s| s.required && !given(s.id)) {
            return refuse(missing.name, "lacks");
        }
        let bytes = size_of::<Header>() + size_of_val(self.attributes.as_slice());
        if bytes > PACKET {
            return refuse("", "has too many attributes");
        }
        let header = Header {
            length: (bytes as u16).into(),
            object_id: self.method.object_id.into(),
            method_id: self.method.method_id.into(),
            num_attrs: (self.attributes.len() as u16).into(),
            driver_id: driver_id.into(),
            ..Header::ZERO
        };
        let mut words = vec![0u64; bytes / size_of::<u64>()];
        let (head, tail) = words.as_mut_bytes().split_at_mut(size_of::<Header>());
        head.copy_from_slice(header.as_bytes());
        tail.copy_from_slice(self.attributes.as_bytes());
        Ok(words)
    }

    fn push_input<K: HasKind>(&mut self, attribute: Attribute<K>, bytes: &'a [u8]) -> &mut Self {
        let data =
            if bytes.len() <= INLINE { inline(bytes) } else { bytes.as_ptr().expose_provenance() as u64 };
        self.push(attribute, bytes.len(), data)
    }

    fn push_output<K: HasKind>(&mut self, attribute: Attribute<K>, buffer: &'a mut [u8]) -> &mut Self {
        self.push(attribute, buffer.len(), buffer.as_mut_ptr().expose_provenance() as u64)
    }

    fn push<K: HasKind>(&mut self, attribute: Attribute<K>, len: usize, data: u64) -> &mut Self {
        let id = attribute.id();
        // What a driver adds to a method of the core is in the driver's own tables.
        let known = id >= DRIVER && self.method.object_id < DRIVER
            || self.method.attributes.iter().any(|s| s.id == id && s.kind == K::KIND);
        let fault = if !known {
            Some("does not have")
        } else if len > LONGEST {
            Some("cannot carry so long a")
        } else if self.attributes.iter().any(|a| a.attr_id.get() == id) {
            Some("has already")
        } else {
            None
        };
        if let Some(what) = fault {
            self.fault.get_or_insert((attribute.name(), what));
            return self;
        }
        self.attributes.push(RawAttribute {
            attr_id: id.into(),
            len: (len as u16).into(),
            flags: flags::MANDATORY.into(),
            data: data.into(),
            ..RawAttribute::ZERO
        });
        self
    }
}

/// Up to 8 bytes, the first one lowest, and zeros.
fn inline(bytes: &[u8]) -> u64 {
    let mut data = [0; INLINE];
    data[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(data)
}

/// What the kernel has written into a packet.
#[derive(Debug)]
pub struct Answer {
    method: &'static Method,
    words: Vec<u64>,
}

impl Answer {
    pub(super) fn new(method: &'static Method, words: Vec<u64>) -> Self {
        Self { method, words }
    }

    /// Handle of the object made.
    ///
    /// # Errors
    /// The answer has none, or one that is no handle.
    pub fn handle(&self, attribute: Attribute<NewHandle>) -> Result<u32> {
        let data = self.data(attribute)?;
        u32::try_from(data).map_err(|_| self.senseless("a handle of more than 32 bits"))
    }

    /// Descriptor of the file made.
    ///
    /// # Errors
    /// The answer has none, or one that is no descriptor.
    pub fn file(&self, attribute: Attribute<NewFile>) -> Result<Fd> {
        let data = self.data(attribute)?;
        let number = i32::try_from(data).ok().and_then(Fd::new);
        number.ok_or_else(|| self.senseless("a file descriptor out of range"))
    }

    fn data<K: HasKind>(&self, attribute: Attribute<K>) -> Result<u64> {
        let attributes = self.words.as_bytes().get(size_of::<Header>()..).unwrap_or_default();
        attributes
            .chunks_exact(size_of::<RawAttribute>())
            .filter_map(|bytes| RawAttribute::read_from_bytes(bytes).ok())
            .find(|a| a.attr_id.get() == attribute.id())
            .map(|a| a.data.get())
            .ok_or_else(|| self.senseless("the attribute asked for is not there"))
    }

    fn senseless(&self, what: &'static str) -> Error {
        let Method { object, name, .. } = self.method;
        Error::Reply { object, method: name, what }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::little_endian::{U32, U64};

    use super::super::abi::methods::*;
    use super::super::abi::packet::BufferDescriptor;
    use super::super::abi::queue_pair::QpCap;
    use super::*;

    fn fd(number: i32) -> Fd {
        Fd::new(number).expect("not negative")
    }

    fn bytes(call: &Call<'_>) -> Vec<u8> {
        call.packet(6).expect("a whole packet").as_bytes().to_vec()
    }

    #[test]
    fn a_packet_has_the_bytes_that_the_abi_says() {
        let mut granted = U32::ZERO;
        let address = &raw mut granted as u64;
        let mut call = Call::new(&create_cq::METHOD);
        call.new_handle(create_cq::HANDLE)
            .value(create_cq::CQE, U32::new(0x1234))
            .value(create_cq::USER_HANDLE, U64::new(0x1122_3344_5566_7788))
            .file(create_cq::COMP_CHANNEL, fd(9))
            .value(create_cq::COMP_VECTOR, U32::new(3))
            .file(create_cq::EVENT_FD, fd(8))
            .advisory()
            .output(create_cq::RESP_CQE, &mut granted);
        let mut expected = Vec::new();
        // length 24 + 7 * 16, object 3, method 0, 7 attributes, 8 zeros, driver 6, 4 zeros
        expected.extend([136, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        let attribute = |id: u8, len: u8, flags: u8, data: u64| {
            [&[id, 0, len, 0, flags, 0, 0, 0][..], &data.to_le_bytes()].concat()
        };
        expected.extend(attribute(0, 0, 1, 0));
        expected.extend(attribute(1, 4, 1, 0x1234));
        expected.extend(attribute(2, 8, 1, 0x1122_3344_5566_7788));
        expected.extend(attribute(3, 0, 1, 9));
        expected.extend(attribute(4, 4, 1, 3));
        expected.extend(attribute(7, 0, 0, 8));
        expected.extend(attribute(6, 4, 1, address));
        assert_eq!(bytes(&call), expected);
    }

    #[test]
    fn eight_bytes_go_in_place_and_nine_by_address() {
        let (eight, nine) = ([1, 2, 3, 4, 5, 6, 7, 8], [9u8; 9]);
        for (input, data) in
            [(&eight[..], 0x0807_0605_0403_0201), (&eight[..3], 0x03_0201), (&nine[..], nine.as_ptr() as u64)]
        {
            let mut call = Call::new(&get_context::METHOD);
            call.input_bytes(UHW_IN, input);
            let packet = bytes(&call);
            let [attribute] = <[RawAttribute; 1]>::read_from_bytes(&packet[24..]).expect("one attribute");
            assert_eq!((attribute.len.get(), attribute.data.get()), (input.len() as u16, data));
        }
    }

    #[test]
    fn outputs_go_by_address_however_short() {
        let mut out = [0u8; 4];
        let address = out.as_ptr() as u64;
        let mut call = Call::new(&get_context::METHOD);
        call.output_bytes(UHW_OUT, &mut out);
        let packet = bytes(&call);
        let attribute = RawAttribute::read_from_bytes(&packet[24..]).expect("one attribute");
        assert_eq!((attribute.len.get(), attribute.data.get()), (4, address));
    }

    #[test]
    fn a_call_that_lacks_an_attribute_is_not_sent() {
        let mut call = Call::new(&destroy::CQ);
        call.handle(destroy::HANDLE, 1);
        let error = call.packet(0).expect_err("RESP is missing");
        assert_eq!(error.to_string(), "completion queue: CQ_DESTROY lacks RESP");
    }

    #[test]
    fn an_attribute_given_twice_or_of_another_method_is_not_sent() {
        let mut twice = Call::new(&destroy::PD);
        twice.handle(destroy::HANDLE, 1).handle(destroy::HANDLE, 2);
        assert_eq!(
            twice.packet(0).expect_err("twice").to_string(),
            "protection domain: PD_DESTROY has already HANDLE"
        );
        let mut foreign = Call::new(&destroy::PD);
        foreign.handle(destroy::HANDLE, 1).value(create_cq::CQE, U32::new(1));
        assert_eq!(
            foreign.packet(0).expect_err("foreign").to_string(),
            "protection domain: PD_DESTROY does not have CQE"
        );
    }

    #[test]
    fn a_buffer_longer_than_the_length_field_is_not_sent() {
        let long = vec![0; 0x1_0000];
        let mut call = Call::new(&get_context::METHOD);
        call.input_bytes(UHW_IN, &long);
        assert!(matches!(call.packet(0), Err(Error::Packet { attribute: "UHW_IN", .. })));
    }

    #[test]
    fn a_file_descriptor_out_of_range_is_refused() {
        let mut call = Call::new(&async_event_alloc::METHOD);
        call.new_file(async_event_alloc::FD_HANDLE);
        let mut words = call.packet(6).expect("a packet");
        for (data, number) in [(5, Some(5)), (u64::MAX, None), (1 << 31, None), (1 << 32, None)] {
            words[4] = data;
            let answer = Answer::new(&async_event_alloc::METHOD, words.clone());
            let file = answer.file(async_event_alloc::FD_HANDLE);
            assert_eq!(file.is_err(), number.is_none(), "{data:#x}");
            assert_eq!(file.ok().map(Fd::get), number);
        }
    }

    #[test]
    fn every_method_has_distinct_attributes_and_names_of_its_own() {
        for method in METHODS {
            for (i, a) in method.attributes.iter().enumerate() {
                assert!(
                    method.attributes[..i].iter().all(|b| a.id != b.id && a.name != b.name),
                    "{}",
                    a.name
                );
            }
            let same =
                METHODS.iter().filter(|m| (m.object_id, m.method_id) == (method.object_id, method.method_id));
            assert_eq!(same.count(), 1, "{}", method.name);
        }
    }

    proptest! {
        /// Whatever is given, the length and the count in the header are those of the packet, and reserved fields are zero.
        #[test]
        fn header_and_attributes_agree(
            which in any::<[bool; 6]>(), cap in any::<[u32; 5]>(), handle in any::<u32>(), uhw in prop::collection::vec(any::<u8>(), 0..64),
            umem in any::<[u64; 2]>(),
        ) {
            let cap = QpCap {
                max_send_wr: cap[0].into(), max_recv_wr: cap[1].into(), max_send_sge: cap[2].into(),
                max_recv_sge: cap[3].into(), max_inline_data: cap[4].into(),
            };
            let buffer = BufferDescriptor { addr: umem[0].into(), length: umem[1].into(), ..BufferDescriptor::ZERO };
            let (mut granted, mut number) = (QpCap::ZERO, U32::ZERO);
            let mut call = Call::new(&create_qp::METHOD);
            call.new_handle(create_qp::HANDLE).input(create_qp::CAP, &cap).constant(create_qp::TYPE, 2)
                .value(create_qp::USER_HANDLE, U64::new(7)).output(create_qp::RESP_CAP, &mut granted)
                .output(create_qp::RESP_QP_NUM, &mut number).input_bytes(UHW_IN, &uhw);
            let mut count = 6 + usize::from(!uhw.is_empty());
            let handles = [create_qp::PD_HANDLE, create_qp::SRQ_HANDLE, create_qp::SEND_CQ_HANDLE, create_qp::RECV_CQ_HANDLE];
            for (attribute, _) in handles.iter().zip(which).filter(|(_, w)| *w) {
                call.handle(*attribute, handle);
                count += 1;
            }
            if which[4] {
                call.input(create_qp::SQ_BUF_UMEM, &buffer);
                count += 1;
            }
            let packet = bytes(&call);
            let (header, rest) = Header::read_from_prefix(&packet).expect("a header");
            prop_assert_eq!(usize::from(header.length.get()), packet.len());
            prop_assert_eq!(usize::from(header.num_attrs.get()), count);
            prop_assert_eq!((header.reserved1.get(), header.reserved2.get()), (0, 0));
            prop_assert_eq!(rest.len(), count * 16);
            for raw in rest.chunks_exact(16) {
                let raw = RawAttribute::read_from_bytes(raw).expect("16 bytes");
                prop_assert_eq!((raw.flags.get(), raw.reserved.get()), (flags::MANDATORY, 0));
                if (1..8).contains(&raw.len.get()) && raw.attr_id.get() != create_qp::RESP_QP_NUM.id() {
                    prop_assert_eq!(raw.data.get() >> (8 * raw.len.get()), 0, "bytes behind a short value");
                }
            }
        }
    }
}
