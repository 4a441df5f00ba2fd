//! Commands of the write interface: through the ioctl method INVOKE_WRITE, or by `write` where there is none.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::abi::command::Command;
use super::abi::methods::{UHW_IN, UHW_OUT, invoke_write};
use super::abi::packet::{CommandHeader, ExtendedHeader};
use super::call::Call;
use crate::error::{Error, Result};

/// The driver's part of a request and of its reply. What a kernel does not fill of the reply stays zero: a feature that
/// is off.
#[derive(Debug, Default)]
pub struct Uhw<'a> {
    pub(super) input: &'a [u8],
    pub(super) output: &'a mut [u8],
}

impl<'a> Uhw<'a> {
    /// None.
    pub fn none() -> Self {
        Self::default()
    }

    /// Only a reply. A driver is asked for nothing, so there is no memory that it could be given.
    pub fn reply<R: IntoBytes + FromBytes>(reply: &'a mut R) -> Self {
        Self { input: &[], output: reply.as_mut_bytes() }
    }

    /// `request` and `reply` of a driver.
    ///
    /// # Safety
    /// Each address in the request that the driver hands to its device is that of mapped memory, as long as the driver takes
    /// it to be. It stays mapped as long as the object lives that is made of the request, and until then nobody holds
    /// references into it, or reads or writes it but as the device's specification wants.
    pub unsafe fn request(request: &'a [u8], reply: &'a mut [u8]) -> Self {
        Self::vouched(request, reply)
    }

    /// The same, from within this crate, where the object made of the request holds the memory that it names, and only the
    /// queue on a ring reaches that ring.
    pub(crate) fn vouched(request: &'a [u8], reply: &'a mut [u8]) -> Self {
        Self { input: request, output: reply }
    }

    /// [`Uhw::vouched`] for structures.
    pub(crate) fn new<Q: IntoBytes + Immutable, R: IntoBytes + FromBytes>(
        request: &'a Q,
        reply: &'a mut R,
    ) -> Self {
        Self::vouched(request.as_bytes(), reply.as_mut_bytes())
    }

    /// Adds both to a call.
    pub(crate) fn add(self, call: &mut Call<'a>) {
        self.output.fill(0);
        call.input_bytes(UHW_IN, self.input).output_bytes(UHW_OUT, self.output);
    }
}

/// The ioctl packet of a command.
pub(super) fn invoke<'a>(command: &Command, core: &'a [u8], reply: &'a mut [u8], uhw: Uhw<'a>) -> Call<'a> {
    let mut call = Call::new(&invoke_write::METHOD);
    call.constant(invoke_write::WRITE_CMD, command.number.into())
        .input_bytes(invoke_write::CORE_IN, core)
        .output_bytes(invoke_write::CORE_OUT, reply);
    uhw.add(&mut call);
    call
}

/// What `write` is given for a command whose reply is to be written to `reply`.
///
/// # Errors
/// A part is not made of whole words, or longer than the header can say.
pub(super) fn written(
    command: &Command,
    core: &[u8],
    core_reply: usize,
    input: &[u8],
    reply: &mut [u8],
) -> Result<Vec<u8>> {
    let fault = |what| Error::Packet { object: command.object, method: command.name, attribute: "", what };
    let words = |bytes: usize, word: usize| {
        if !bytes.is_multiple_of(word) {
            return Err(fault("is not made of whole words"));
        }
        u16::try_from(bytes / word).map_err(|_| fault("is too long"))
    };
    let reply_length = reply.len();
    let address = if reply.is_empty() { 0 } else { reply.as_mut_ptr().expose_provenance() as u64 };
    let mut bytes = Vec::with_capacity(64 + core.len() + input.len());
    if command.is_extended() {
        let header = CommandHeader {
            command: command.number.into(),
            in_words: words(core.len(), 8)?.into(),
            out_words: words(core_reply, 8)?.into(),
        };
        let extended = ExtendedHeader {
            response: address.into(),
            provider_in_words: words(input.len(), 8)?.into(),
            provider_out_words: words(reply_length - core_reply, 8)?.into(),
            ..ExtendedHeader::ZERO
        };
        bytes.extend([header.as_bytes(), extended.as_bytes(), core, input].concat());
        return Ok(bytes);
    }
    let header = CommandHeader {
        command: command.number.into(),
        in_words: words(size_of::<CommandHeader>() + core.len() + input.len(), 4)?.into(),
        out_words: words(reply_length, 4)?.into(),
    };
    bytes.extend([header.as_bytes(), core, input].concat());
    if command.replies {
        let at = size_of::<CommandHeader>();
        bytes[at..at + size_of::<u64>()].copy_from_slice(&address.to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::abi::command::*;
    use super::super::abi::query::QueryDeviceEx;
    use super::*;

    #[test]
    fn a_written_command_names_its_reply_and_counts_words_of_four_bytes() {
        // ALLOC_PD of bnxt_re: a reply of 4 bytes, and the driver's of 16 right behind it.
        let mut reply = [0u8; 20];
        let address = reply.as_ptr() as u64;
        let bytes = written(&ALLOC_PD, ReplyOnly::ZERO.as_bytes(), 4, &[], &mut reply).expect("whole words");
        let mut expected = vec![3, 0, 0, 0, 4, 0, 5, 0];
        expected.extend(address.to_le_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn an_extended_command_counts_words_of_eight_bytes_and_the_driver_apart() {
        let mut reply = [0u8; 176 + 56 + 16];
        let address = reply.as_ptr() as u64;
        let core = QueryDeviceEx::ZERO;
        let bytes =
            written(&QUERY_DEVICE_EX, core.as_bytes(), 232, &[7; 8], &mut reply).expect("whole words");
        let mut expected = vec![1, 0, 0, 0x80, 1, 0, 29, 0];
        expected.extend(address.to_le_bytes());
        expected.extend([1, 0, 2, 0, 0, 0, 0, 0]);
        expected.extend([0; 8]);
        expected.extend([7; 8]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_command_without_reply_names_none() {
        let core = ReqNotifyCq { cq_handle: 5.into(), solicited_only: 1.into() };
        let bytes = written(&REQ_NOTIFY_CQ, core.as_bytes(), 0, &[], &mut []).expect("whole words");
        assert_eq!(bytes, [23, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn half_a_word_is_not_sent() {
        let error = written(&ALLOC_PD, ReplyOnly::ZERO.as_bytes(), 4, &[0; 3], &mut [0; 4]);
        assert!(matches!(error, Err(Error::Packet { method: "ALLOC_PD", .. })));
        let error = written(&QUERY_DEVICE_EX, &[0; 8], 8, &[0; 4], &mut [0; 8]);
        assert!(matches!(error, Err(Error::Packet { .. })));
    }
}
