//! Tables of objects by number.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use crate::device::DeviceError;

/// Spreads numbers by multiplication: they are ours, so nobody can choose them to collide.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// Objects of one kind by number.
#[derive(Debug)]
pub struct Table<T> {
    name: &'static str,
    first: u32,
    last: u32,
    objects: HashMap<u32, T, BuildHasherDefault<NumberHasher>>,
    /// Where the search for a free number goes on, so that numbers are not used again at once.
    next: u32,
}

impl<T> Table<T> {
    /// A table of objects called `name` in error messages, with numbers from `first` to `last`.
    pub fn new(name: &'static str, first: u32, last: u32) -> Self {
        Self { name, first, last, objects: HashMap::default(), next: first }
    }

    /// Adds an object under the number asked for, or a free one.
    ///
    /// # Errors
    /// The number is taken or outside the table's range, or all are taken.
    pub fn insert(&mut self, id: Option<u32>, object: T) -> Result<u32, DeviceError> {
        let id = match id {
            Some(id) => id,
            None => self.free()?,
        };
        if id > self.last {
            return Err(self.no_such(id));
        }
        match self.objects.entry(id) {
            Entry::Occupied(_) => Err(DeviceError::Exists { object: self.name, id }),
            Entry::Vacant(entry) => {
                entry.insert(object);
                Ok(id)
            }
        }
    }

    fn free(&mut self) -> Result<u32, DeviceError> {
        let count = u64::from(self.last - self.first) + 1;
        for _ in 0..count.min(self.objects.len() as u64 + 1) {
            let id = self.next;
            self.next = if id >= self.last { self.first } else { id + 1 };
            if !self.objects.contains_key(&id) {
                return Ok(id);
            }
        }
        Err(DeviceError::Exists { object: self.name, id: self.last })
    }

    fn no_such(&self, id: u32) -> DeviceError {
        DeviceError::NoSuch { object: self.name, id }
    }

    /// The object with this number, if there is one.
    pub fn find(&self, id: u32) -> Option<&T> {
        self.objects.get(&id)
    }

    /// The object with this number, if there is one.
    pub fn find_mut(&mut self, id: u32) -> Option<&mut T> {
        self.objects.get_mut(&id)
    }

    /// The object with this number.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, id: u32) -> Result<&T, DeviceError> {
        self.objects.get(&id).ok_or(self.no_such(id))
    }

    /// The object with this number.
    ///
    /// # Errors
    /// There is none.
    pub fn get_mut(&mut self, id: u32) -> Result<&mut T, DeviceError> {
        let error = self.no_such(id);
        self.objects.get_mut(&id).ok_or(error)
    }

    /// Takes the object with this number out.
    ///
    /// # Errors
    /// There is none.
    pub fn remove(&mut self, id: u32) -> Result<T, DeviceError> {
        self.objects.remove(&id).ok_or(self.no_such(id))
    }

    /// The error for an object that others refer to.
    pub fn in_use(&self, id: u32) -> DeviceError {
        DeviceError::InUse { object: self.name, id }
    }
}

/// An object that others refer to: it cannot go before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Users(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_not_again_at_once() {
        let mut table = Table::new("thing", 1, 3);
        assert_eq!(table.insert(None, 'a'), Ok(1));
        assert_eq!(table.insert(Some(2), 'b'), Ok(2));
        assert_eq!(table.insert(Some(2), 'c'), Err(DeviceError::Exists { object: "thing", id: 2 }));
        assert_eq!(table.remove(1), Ok('a'));
        assert_eq!(table.insert(None, 'd'), Ok(3));
        assert_eq!(table.insert(None, 'e'), Ok(1));
        assert_eq!(table.insert(None, 'f'), Err(DeviceError::Exists { object: "thing", id: 3 }));
        assert_eq!(table.insert(Some(4), 'g'), Err(DeviceError::NoSuch { object: "thing", id: 4 }));
    }
}
