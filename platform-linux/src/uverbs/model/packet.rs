//! Taking packets and commands apart.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use super::super::abi::attribute::{Kind, Method, Spec};
use super::super::abi::command::*;
use super::super::abi::methods::{METHODS, invoke_write};
use super::super::abi::packet::{CommandHeader, EXTENDED, ExtendedHeader, Header, RawAttribute, flags};
use super::super::kernel::Fd;
use super::Model;

/// What was sent: a call or a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Method or command.
    pub name: &'static str,
    /// Attributes in the order sent, with their values; outputs have none.
    pub attributes: Vec<(&'static str, Vec<u8>)>,
    /// Attributes that the kernel may ignore.
    pub advisory: Vec<&'static str>,
}

impl Request {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_slice())
    }

    /// The number in an attribute.
    pub fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        let mut bytes = [0; 8];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(u64::from_le_bytes(bytes))
    }
}

/// What a call has made.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Object or file.
    pub new: Option<u32>,
    /// The command that was inside.
    pub command: Option<&'static str>,
    /// Outputs, by the attribute's name.
    pub outputs: Vec<(&'static str, Vec<u8>)>,
}

const COMMANDS: [Command; 14] = [
    QUERY_DEVICE,
    QUERY_DEVICE_EX,
    ALLOC_PD,
    CREATE_AH,
    REG_MR,
    ALLOC_MW,
    CREATE_COMP_CHANNEL,
    RESIZE_CQ,
    REQ_NOTIFY_CQ,
    QUERY_QP,
    MODIFY_QP,
    MODIFY_QP_EX,
    MODIFY_SRQ,
    QUERY_SRQ,
];

impl Model {
    /// # Safety
    /// As for [`super::Kernel::ioctl`].
    pub(super) unsafe fn run_packet(&self, fd: Fd, words: &mut [u64]) -> Result<(), Errno> {
        let bytes = words.as_mut_bytes();
        let (head, rest) = bytes.split_at_mut_checked(size_of::<Header>()).ok_or(Errno::INVAL)?;
        let header = Header::read_from_bytes(head).map_err(|_| Errno::INVAL)?;
        let attributes = <[RawAttribute]>::mut_from_bytes(rest).map_err(|_| Errno::INVAL)?;
        let length = size_of::<Header>() + size_of_val(attributes);
        let count = usize::from(header.num_attrs.get());
        if usize::from(header.length.get()) != length || count != attributes.len() {
            return Err(Errno::INVAL);
        }
        if header.reserved1.get() != 0 || header.reserved2.get() != 0 {
            return Err(Errno::PROTONOSUPPORT);
        }
        let key = (header.object_id.get(), header.method_id.get());
        let mut methods = METHODS.iter().chain(self.settings.methods);
        let method = *methods.find(|m| (m.object_id, m.method_id) == key).ok_or(Errno::PROTONOSUPPORT)?;
        let probing = method == &invoke_write::METHOD && count == 1;
        // Destroying does not fail when others shall.
        if !destroys(method) {
            self.state().count()?;
        }
        if !self.settings.ioctl {
            return Err(Errno::NOTTY);
        }
        if header.driver_id.get() != self.settings.driver_id {
            return Err(Errno::INVAL);
        }
        self.check_method(method)?;
        // SAFETY: the caller vouches for the addresses.
        let request = unsafe { self.request(method, attributes) }?;
        let outcome = if method == &invoke_write::METHOD {
            // SAFETY: as above.
            unsafe { self.invoke(fd, &request, attributes) }
        } else {
            self.state().log.push(request.clone());
            self.execute(fd, method, &request)
        }?;
        assert!(!probing, "a probe is refused for its length");
        let told = outcome.command.unwrap_or(method.name);
        for raw in attributes {
            let Some(spec) = self.spec(method, raw) else { continue };
            match spec.kind {
                Kind::NewHandle | Kind::NewFile => raw.data = u64::from(outcome.new.unwrap_or(0)).into(),
                Kind::Output(_) | Kind::OutputBytes => {
                    let output = match spec.name {
                        "UHW_OUT" => self.uhw(told),
                        name => outcome
                            .outputs
                            .iter()
                            .find(|(n, _)| *n == name)
                            .map_or(&[][..], |(_, o)| o.as_slice()),
                    };
                    // SAFETY: as above.
                    unsafe { put(raw, output) };
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What the method, or the driver, says about an attribute.
    fn spec(&self, method: &'static Method, raw: &RawAttribute) -> Option<&'static Spec> {
        let added = self.settings.attributes.iter().filter(|(name, _)| *name == method.name).map(|(_, s)| s);
        method.attributes.iter().chain(added).find(|s| s.id == raw.attr_id.get())
    }

    /// Checks attributes as the kernel does, and copies what they carry.
    ///
    /// # Safety
    /// Addresses of inputs are readable.
    unsafe fn request(&self, method: &'static Method, attributes: &[RawAttribute]) -> Result<Request, Errno> {
        let mut request = Request { name: method.name, ..Request::default() };
        for (i, raw) in attributes.iter().enumerate() {
            let known = self.spec(method, raw).filter(|s| self.knows(s));
            let mandatory = raw.flags.get() & flags::MANDATORY != 0;
            let Some(spec) = known else {
                if mandatory {
                    return Err(Errno::PROTONOSUPPORT);
                }
                continue;
            };
            if attributes[..i].iter().any(|a| a.attr_id == raw.attr_id) || raw.reserved.get() != 0 {
                return Err(Errno::INVAL);
            }
            let length = usize::from(raw.len.get());
            let fits = match spec.kind {
                Kind::Handle | Kind::NewHandle | Kind::File | Kind::NewFile | Kind::RawFile => length == 0,
                Kind::Constant => length == 8,
                Kind::Input(size) | Kind::Output(size) => length == size,
                Kind::InputBytes | Kind::OutputBytes => length > 0,
            };
            if !fits {
                return Err(Errno::INVAL);
            }
            let value = match spec.kind {
                Kind::Input(_) | Kind::InputBytes if length > 8 => {
                    // SAFETY: the caller vouches for it.
                    unsafe { get(raw.data.get(), length) }
                }
                Kind::Input(_) | Kind::InputBytes | Kind::Constant => {
                    let bytes = raw.data.get().to_le_bytes();
                    assert!(bytes[length..].iter().all(|b| *b == 0), "bytes behind a short value");
                    bytes[..length].to_vec()
                }
                Kind::Handle | Kind::File | Kind::RawFile => raw.data.get().to_le_bytes().to_vec(),
                _ => Vec::new(),
            };
            request.attributes.push((spec.name, value));
            if !mandatory {
                request.advisory.push(spec.name);
            }
        }
        let missing = |s: &&Spec| s.required && request.get(s.name).is_none();
        if method.attributes.iter().any(|s| missing(&s)) {
            return Err(Errno::INVAL);
        }
        Ok(request)
    }

    /// Carries out the command inside INVOKE_WRITE.
    ///
    /// # Safety
    /// Addresses of outputs are writable.
    unsafe fn invoke(
        &self,
        fd: Fd,
        request: &Request,
        attributes: &mut [RawAttribute],
    ) -> Result<Outcome, Errno> {
        let number = request.number("WRITE_CMD").ok_or(Errno::INVAL)? as u32;
        let command = COMMANDS.iter().find(|c| c.number == number).ok_or(Errno::OPNOTSUPP)?;
        let Some(core) = request.get("CORE_IN") else { return Err(Errno::NOSPC) };
        let room = attributes.iter().find(|a| a.attr_id.get() == invoke_write::CORE_OUT.id());
        let room = room.map_or(0, |a| usize::from(a.len.get()));
        let uhw = request.get("UHW_IN").unwrap_or_default();
        let reply = self.command(fd, command, core, room, uhw)?;
        Ok(Outcome { new: None, command: Some(command.name), outputs: vec![("CORE_OUT", reply)] })
    }

    /// # Safety
    /// As for [`super::Kernel::write`].
    pub(super) unsafe fn run_write(&self, fd: Fd, bytes: &[u8]) -> Result<(), Errno> {
        self.state().count()?;
        let (header, rest) = CommandHeader::read_from_prefix(bytes).map_err(|_| Errno::INVAL)?;
        let number = header.command.get();
        let command = COMMANDS.iter().find(|c| c.number == number).ok_or(Errno::OPNOTSUPP)?;
        let (in_words, out_words) = (usize::from(header.in_words.get()), usize::from(header.out_words.get()));
        let (core, uhw, response, room, driver_room) = if number & EXTENDED != 0 {
            let (extended, rest) = ExtendedHeader::read_from_prefix(rest).map_err(|_| Errno::INVAL)?;
            let driver = usize::from(extended.provider_in_words.get());
            assert_eq!(rest.len(), (in_words + driver) * 8, "words of an extended command");
            assert_eq!(extended.cmd_hdr_reserved.get(), 0);
            let (core, uhw) = rest.split_at(in_words * 8);
            let driver_room = usize::from(extended.provider_out_words.get()) * 8;
            (core, uhw, extended.response.get(), out_words * 8, driver_room)
        } else {
            assert_eq!(bytes.len(), in_words * 4, "words of a command");
            let core_length = core_length(command);
            let (core, uhw) = rest.split_at(core_length);
            let response = core.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
            (core, uhw, if command.replies { response } else { 0 }, out_words * 4, 0)
        };
        let reply = self.command(fd, command, core, room, uhw)?;
        if response != 0 {
            let all = [reply.as_slice(), self.uhw(command.name)].concat();
            let count = all.len().min(room + driver_room);
            // SAFETY: the caller vouches for the address and the lengths in the headers.
            unsafe { copy(&all[..count], response) };
        }
        Ok(())
    }

    fn command(
        &self,
        fd: Fd,
        command: &'static Command,
        core: &[u8],
        room: usize,
        uhw: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        if core.len() < core_length(command) {
            return Err(Errno::NOSPC);
        }
        let mut attributes = vec![("CORE_IN", core.to_vec())];
        if !uhw.is_empty() {
            attributes.push(("UHW_IN", uhw.to_vec()));
        }
        self.state().log.push(Request { name: command.name, attributes, ..Request::default() });
        self.execute_command(fd, command, core, room)
    }
}

/// Bytes of a command's fixed part.
fn core_length(command: &Command) -> usize {
    match *command {
        QUERY_DEVICE | QUERY_DEVICE_EX | ALLOC_PD | CREATE_COMP_CHANNEL | REQ_NOTIFY_CQ => 8,
        CREATE_AH => size_of::<CreateAh>(),
        REG_MR => size_of::<RegMr>(),
        MODIFY_QP => 112,
        MODIFY_QP_EX => 120,
        _ => 16,
    }
}

/// Whether a method destroys an object.
pub(super) fn destroys(method: &Method) -> bool {
    ["DESTROY", "FREE", "RELEASE"].iter().any(|end| method.name.ends_with(end))
}

/// # Safety
/// There are `length` readable bytes at `address`.
unsafe fn get(address: u64, length: usize) -> Vec<u8> {
    let first = with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller vouches for it.
    (0..length).map(|i| unsafe { first.add(i).read() }).collect()
}

/// # Safety
/// The address in the attribute is writable for its length.
unsafe fn put(raw: &RawAttribute, output: &[u8]) {
    let count = output.len().min(usize::from(raw.len.get()));
    // SAFETY: the caller vouches for it.
    unsafe { copy(&output[..count], raw.data.get()) }
}

/// # Safety
/// `address` is writable for the bytes.
unsafe fn copy(bytes: &[u8], address: u64) {
    let first = with_exposed_provenance_mut::<u8>(address as usize);
    for (i, byte) in bytes.iter().enumerate() {
        // SAFETY: the caller vouches for it.
        unsafe { first.add(i).write(*byte) }
    }
}
