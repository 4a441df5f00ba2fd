use std::fmt;
use std::sync::Arc;

/// Takes a line of text for each command; off by default. Clones share the taker.
#[derive(Clone, Default)]
pub struct Trace(Option<Arc<dyn Fn(&str) + Send + Sync>>);

impl Trace {
    /// Gives each line to `taker`.
    pub fn to(taker: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(taker)))
    }

    /// Says what `line` gives, which is called only if somebody listens.
    pub fn say(&self, line: impl FnOnce() -> String) {
        if let Some(taker) = &self.0 {
            taker(&line());
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Trace(on)" } else { "Trace(off)" })
    }
}
