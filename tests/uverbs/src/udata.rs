//! The driver's part of a request.

use zerocopy::FromBytes;

use crate::Errno;
use crate::profile::Release;

/// What the process's library says to the driver.
#[derive(Clone, Debug, Default)]
pub struct Udata(Vec<u8>);

impl Udata {
    /// As it came.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the structure `T`, of which the first `known` bytes exist in this release and the first `needed` must be given.
    /// Bytes that were not given are zero.
    ///
    /// Kernels that promise robust driver data look at all of it; 6.12 copies what it knows.
    ///
    /// # Errors
    /// EINVAL: too short. EOPNOTSUPP: something that the kernel does not know is not zero.
    pub fn get<T: FromBytes>(&self, release: Release, needed: usize, known: usize) -> Result<T, Errno> {
        let robust = is_robust(release);
        if self.0.len() < needed {
            return Err(if robust { Errno::INVAL } else { Errno::FAULT });
        }
        let (first, rest) = self.0.split_at(self.0.len().min(known));
        if robust && rest.iter().any(|byte| *byte != 0) {
            return Err(Errno::OPNOTSUPP);
        }
        let mut bytes = first.to_vec();
        bytes.resize(size_of::<T>(), 0);
        T::read_from_bytes(&bytes).map_err(|_| Errno::INVAL)
    }
}

/// Whether drivers of a release look at all of their data, and say so in the context's features.
pub fn is_robust(release: Release) -> bool {
    release >= Release::V7_2
}

/// Checks a `comp_mask`.
///
/// # Errors
/// EOPNOTSUPP: other bits than `known`, if the kernel looks.
pub fn check_mask(release: Release, mask: u64, known: u64) -> Result<(), Errno> {
    if is_robust(release) && mask & !known != 0 { Err(Errno::OPNOTSUPP) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_does_not_know_must_be_zero_if_it_looks() {
        let udata = |bytes: &[u8]| Udata::new(bytes.to_vec());
        let get = |bytes: &[u8], release| udata(bytes).get::<[u8; 4]>(release, 1, 2);
        assert_eq!(get(&[1, 2], Release::V7_3), Ok([1, 2, 0, 0]));
        assert_eq!(get(&[1, 2, 0, 0, 0], Release::V7_3), Ok([1, 2, 0, 0]));
        assert_eq!(get(&[1, 2, 0, 0, 5], Release::V7_2), Err(Errno::OPNOTSUPP));
        assert_eq!(get(&[1, 2, 3, 4, 5], Release::V6_12), Ok([1, 2, 0, 0]));
        assert_eq!(get(&[], Release::V7_3), Err(Errno::INVAL));
        assert_eq!(check_mask(Release::V7_3, 4, 3), Err(Errno::OPNOTSUPP));
        assert_eq!(check_mask(Release::V6_12, 4, 3), Ok(()));
    }
}
