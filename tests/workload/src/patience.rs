/// Steps without a completion after which a side gives up even if the device's clock stands still.
const MAX_IDLE_STEPS: u64 = 50_000_000;

/// How long a side has waited in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// When the last completion came, in nanoseconds of the device's clock.
    pub(crate) last_completion_ns: u64,
    /// Steps since then that found nothing to do.
    idle_steps: u64,
}

impl Patience {
    /// Something completed.
    pub(crate) fn renew(&mut self, now_ns: u64) {
        *self = Self { last_completion_ns: now_ns, idle_steps: 0 };
    }

    /// There was nothing to do. Gives the nanoseconds waited if `limit_ns` is passed.
    pub(crate) fn lose(&mut self, now_ns: u64, limit_ns: u64) -> Option<u64> {
        let waited_ns = now_ns.saturating_sub(self.last_completion_ns);
        self.idle_steps += 1;
        (waited_ns > limit_ns || self.idle_steps > MAX_IDLE_STEPS).then_some(waited_ns)
    }
}
