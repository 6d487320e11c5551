//! Numbers in frames, which other processes may write during a read.

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use std::sync::atomic::Ordering;

/// Numbers read as a whole at any address.
pub trait Scalar: Copy {
    /// Reads the number at `from` with one instruction, if the processor has one, under concurrent writes.
    ///
    /// # Safety
    /// The bytes are mapped, and Rust code has no reference to them. They are only accessed by copies like this one, by
    /// other processes and by the system.
    unsafe fn read(from: *const u8) -> Self;
}

macro_rules! scalars {
    ($($type:ty, $register:ident, $template:literal;)*) => {$(
        impl Scalar for $type {
            #[inline(always)]
            unsafe fn read(from: *const u8) -> $type {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    let value: $type;
                    // SAFETY: the bytes are mapped. To Rust, assembly is as foreign as another process with the same
                    // memory, so a race with a write yields some bytes and nothing worse. A torn read is detected by
                    // the version of the page, or is a race between the client's own operations.
                    unsafe {
                        std::arch::asm!($template, out($register) value, in(reg) from,
                            options(nostack, preserves_flags, readonly));
                    }
                    value
                }
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                {
                    let mut bytes = [0; size_of::<$type>()];
                    for (at, byte) in bytes.iter_mut().enumerate() {
                        // SAFETY: the bytes are mapped, and a byte is always aligned for an atomic access.
                        let shared = unsafe { std::sync::atomic::AtomicU8::from_ptr(from.add(at).cast_mut()) };
                        *byte = shared.load(Ordering::Relaxed);
                    }
                    <$type>::from_ne_bytes(bytes)
                }
            }
        }
    )*};
}

scalars! {
    u8, reg_byte, "mov {0}, byte ptr [{1}]";
    u16, reg, "mov {0:x}, word ptr [{1}]";
    u32, reg, "mov {0:e}, dword ptr [{1}]";
    u64, reg, "mov {0}, qword ptr [{1}]";
}
