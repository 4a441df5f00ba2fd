//! Progress on standard error, if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How much there is to do.
#[derive(Clone, Copy)]
pub enum Extent {
    /// So many turns or messages.
    Count(u64),
    /// So many nanoseconds.
    Time(u64),
}

/// A bar that is drawn while something goes on, and then gone.
pub struct Bar {
    bar: ProgressBar,
    extent: Extent,
}

impl Bar {
    /// A bar called `name`, or none at all if `hidden`.
    pub fn new(name: &str, extent: Extent, hidden: bool) -> Self {
        if hidden {
            return Self { bar: ProgressBar::hidden(), extent };
        }
        let (length, template) = match extent {
            Extent::Count(count) => (count, "{name} {wide_bar} {pos}/{len}, {eta} left"),
            Extent::Time(ns) => (ns / 1_000_000, "{name} {wide_bar} {eta} left"),
        };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&template.replace("{name}", name)) {
            bar.set_style(style);
        }
        Self { bar, extent }
    }

    /// So much is done.
    pub fn at(&self, count: u64, ns: u64) {
        self.bar.set_position(match self.extent {
            Extent::Count(_) => count,
            Extent::Time(_) => ns / 1_000_000,
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
