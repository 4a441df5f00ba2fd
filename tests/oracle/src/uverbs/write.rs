//! Commands by write(): a header, the request, and for most the reply's address.

use super::Errno;
use super::abi::{EXTENDED, NUMBER};
use super::command::{self, Reply, Shape};
use super::device::State;

/// Carries out the command in `bytes`.
///
/// # Safety
/// The reply's address is memory of the length that the header tells.
pub unsafe fn run(state: &mut State, bytes: &[u8]) -> Result<(), Errno> {
    let word = |at: usize| half(bytes, at);
    let number = u32::from(word(0)?) | u32::from(word(2)?) << 16;
    let (in_words, out_words) = (usize::from(word(4)?), usize::from(word(6)?));
    if number & EXTENDED != 0 {
        // Header, response u64, provider words, reserved: 24 bytes; words are of 8 bytes.
        let address = address(bytes, 8)?;
        let (provider_in, provider_out) = (usize::from(word(16)?), usize::from(word(18)?));
        let request = bytes.get(24..24 + in_words * 8).ok_or(libc::EINVAL)?;
        let driver = bytes.get(24 + in_words * 8..).ok_or(libc::EINVAL)?;
        if driver.len() != provider_in * 8 {
            return Err(libc::EINVAL);
        }
        let reply = command::run(state, number & NUMBER, true, request, driver)?;
        // SAFETY: the caller's.
        unsafe { answer(address, &reply, out_words * 8, provider_out * 8) };
        return Ok(());
    }
    let Shape { request, reply: core, address: with_address } =
        command::shape(number).ok_or(libc::EOPNOTSUPP)?;
    let whole = bytes.get(8..in_words * 4).ok_or(libc::EINVAL)?;
    if whole.len() < request {
        return Err(libc::EINVAL);
    }
    let (asked, driver) = whole.split_at(request);
    let reply = command::run(state, number, false, asked, driver)?;
    if with_address {
        let address = address(bytes, 8)?;
        let room = out_words * 4;
        // SAFETY: the caller's.
        unsafe { answer(address, &reply, core.min(room), room.saturating_sub(core)) };
    }
    Ok(())
}

fn half(bytes: &[u8], at: usize) -> Result<u16, Errno> {
    let half = bytes.get(at..at + 2).and_then(|half| half.try_into().ok());
    half.map(u16::from_ne_bytes).ok_or(libc::EINVAL)
}

fn address(bytes: &[u8], at: usize) -> Result<*mut u8, Errno> {
    let address = bytes.get(at..at + 8).and_then(|address| address.try_into().ok());
    address.map(|address| u64::from_ne_bytes(address) as *mut u8).ok_or(libc::EINVAL)
}

/// Puts the core's part, and behind it the driver's.
///
/// # Safety
/// `to` has room for both.
unsafe fn answer(to: *mut u8, reply: &Reply, core: usize, driver: usize) {
    let bytes = |part: &[u8], room: usize| part.iter().copied().take(room).collect::<Vec<u8>>();
    let (first, second) = (bytes(&reply.core, core), bytes(&reply.driver, driver));
    // SAFETY: the caller's.
    unsafe {
        to.copy_from_nonoverlapping(first.as_ptr(), first.len());
        to.add(core).copy_from_nonoverlapping(second.as_ptr(), second.len());
    }
}
