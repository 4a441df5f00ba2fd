//! What the image says: lines on the serial port.

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use crate::arch;

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| arch::Serial::CONSOLE.put(byte));
        Ok(())
    }
}

/// Says a line.
pub fn say(line: fmt::Arguments<'_>) {
    // The port takes everything; an error can only come from a value that refuses to be formatted.
    let _ = writeln!(Serial, "{line}");
}

/// Says how far a failed line can be trusted: what went wrong is not a check, so the image ends.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    say(format_args!("unikernel: {info}"));
    arch::exit(false)
}
