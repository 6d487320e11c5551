//! The buffers of gets.

/// The contiguous bytes to which a get copies. They are the get's until it is complete: MPI and this library may write
/// them, and the program does not access them.
#[derive(Clone, Copy, Debug)]
pub struct GetBuffer {
    address: usize,
    len: usize,
}

impl GetBuffer {
    /// The buffer of a get.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed these bytes as the buffer of a get, or as a part of it. By MPI's rules they are
    /// writable, and nobody else accesses them, until the get is complete. The value is used no longer.
    #[inline]
    pub const unsafe fn new(address: usize, len: usize) -> GetBuffer {
        GetBuffer { address, len }
    }

    #[inline]
    pub fn address(self) -> usize {
        self.address
    }

    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// The bytes from this one on.
    pub fn tail(self, from: usize) -> GetBuffer {
        assert!(from <= self.len, "a byte of the buffer");
        GetBuffer { address: self.address + from, len: self.len - from }
    }
}
