//! Memory of other processes of this host, copied by the kernel (`process_vm_readv`).
//!
//! A process that lets others read gives the address of a random number, its proof. The reader has the kernel copy the
//! proof with the bytes: so it detects a process of another PID namespace, or one that reuses the number of an ended
//! process.

use super::errno::last_errno;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Identity of a process, for readers of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process number.
    pub id: u32,
    /// Address of its proof.
    pub proof_address: u64,
    /// The proof.
    pub proof: u64,
}

/// Bytes of a process were not read. The kernel does not let this process read there, or no process or another one has
/// this number, or one of the two processes cannot access its bytes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError;

static PROOF: AtomicU64 = AtomicU64::new(0);

/// The process of [`let_descendants_read`]; 0 if there is none.
static ANCESTOR: AtomicU32 = AtomicU32::new(0);

/// Sets the common ancestor of the processes that are to read this one's memory. Called before the first
/// [`Process::this`].
pub fn let_descendants_read(ancestor: u32) {
    ANCESTOR.store(ancestor, Ordering::SeqCst);
}

impl Process {
    /// This process. From the first call on others may read, if the system requires permission.
    pub fn this() -> Process {
        static INIT: OnceLock<u64> = OnceLock::new();
        let proof = *INIT.get_or_init(|| {
            let proof = random_number();
            PROOF.store(proof, Ordering::SeqCst);
            let_others_read();
            proof
        });
        // SAFETY: the call has no conditions.
        let id = unsafe { libc::getpid() } as u32;
        Process { id, proof_address: PROOF.as_ptr().expose_provenance() as u64, proof }
    }

    /// Copies `len_bytes` bytes at `address` of the process to `to`. After an error the bytes at `to` are undefined.
    ///
    /// # Errors
    /// [`ReadError`].
    ///
    /// # Safety
    /// Only this call uses the `len_bytes` bytes at `to`. If they cannot be written, the call fails.
    pub unsafe fn read(&self, address: u64, to: *mut u8, len_bytes: usize) -> Result<(), ReadError> {
        let mut done = 0;
        while done < len_bytes {
            let from = address.checked_add(done as u64).ok_or(ReadError)?;
            // SAFETY: the bytes are a part of the range at `to`.
            match unsafe { self.read_some(from, to.wrapping_add(done), len_bytes - done) }? {
                0 => return Err(ReadError),
                some => done += some,
            }
        }
        Ok(())
    }

    /// Copies as many bytes as the kernel does at once. Returns how many; 0 if the first cannot be copied.
    ///
    /// # Safety
    /// As for [`Process::read`].
    unsafe fn read_some(&self, address: u64, to: *mut u8, len_bytes: usize) -> Result<usize, ReadError> {
        let mut proof = 0_u64;
        let proof_bytes = size_of_val(&proof);
        let here = [part((&raw mut proof).cast(), proof_bytes), part(to, len_bytes)];
        let there = |address: u64, len_bytes| part(std::ptr::with_exposed_provenance_mut(address as usize), len_bytes);
        let there = [there(self.proof_address, proof_bytes), there(address, len_bytes)];
        // SAFETY: the kernel writes to `proof`, and to the bytes at `to`, which nobody else uses; it reads in the other
        // process.
        let copied = unsafe { libc::process_vm_readv(self.id as libc::pid_t, here.as_ptr(), 2, there.as_ptr(), 2, 0) };
        if copied < proof_bytes as isize || proof != self.proof {
            return Err(ReadError);
        }
        Ok(copied as usize - proof_bytes)
    }
}

fn part(start: *mut u8, len_bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: start.cast(), iov_len: len_bytes }
}

fn random_number() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the kernel writes as many bytes there.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got != bytes.len() as isize {
        let _ = last_errno();
        return PROOF.as_ptr().addr() as u64 ^ u64::from(std::process::id()) << 40 | 1;
    }
    u64::from_ne_bytes(bytes)
}

fn let_others_read() {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if let Some(whom) = reader_to_name(&scope, ANCESTOR.load(Ordering::SeqCst)) {
        // If it fails, nobody is let in.
        // SAFETY: the call only changes who may read.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, whom) };
    }
}

/// The reader to name under Yama's scope. Under scope 1 only ancestors may read, and the named process with its
/// descendants. Without a common ancestor, siblings need permission for all processes of the user, as without Yama.
fn reader_to_name(scope: &str, ancestor: u32) -> Option<libc::c_ulong> {
    const ONLY_ANCESTORS: &str = "1";
    let whom = if ancestor == 0 { libc::PR_SET_PTRACER_ANY } else { libc::c_ulong::from(ancestor) };
    (scope.trim() == ONLY_ANCESTORS).then_some(whom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_read(of: &Process, address: usize, to: &mut [u8]) -> Result<(), ReadError> {
        // SAFETY: the slice is the caller's alone.
        unsafe { of.read(address as u64, to.as_mut_ptr(), to.len()) }
    }

    /// Two pages, the second without access.
    fn half_protected() -> (*mut u8, usize) {
        let page = 4096;
        // SAFETY: a new mapping, and a change of its second half.
        unsafe {
            let all = libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(all, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(all.byte_add(page), page, libc::PROT_NONE), 0);
            (all.cast(), page)
        }
    }

    #[test]
    fn yama_hears_of_the_launcher_and_of_all_only_without_one() {
        for scope in ["", "0\n", "2\n", "3\n"] {
            assert_eq!(reader_to_name(scope, 7), None);
        }
        assert_eq!(reader_to_name("1\n", 7), Some(7));
        assert_eq!(reader_to_name("1\n", 0), Some(libc::PR_SET_PTRACER_ANY));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it has no other processes")]
    fn bytes_are_read_where_the_proof_is_and_both_sides_can_access_them() {
        let own = Process::this();
        let source: Vec<u8> = (0..100_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
        let mut target = vec![0; source.len()];
        match try_read(&own, source.as_ptr().addr(), &mut target) {
            Err(ReadError) => return eprintln!("NOT RUN: this kernel lets no process read another's memory"),
            done => assert_eq!((done, target == source), (Ok(()), true)),
        }
        let another = Process { proof: own.proof ^ 1, ..own };
        assert_eq!(try_read(&another, source.as_ptr().addr(), &mut target), Err(ReadError));
        let nobody = Process { id: i32::MAX as u32, ..own };
        assert_eq!(try_read(&nobody, source.as_ptr().addr(), &mut target), Err(ReadError));
        let (start, page) = half_protected();
        assert_eq!(try_read(&own, start.addr() + 100, &mut target[..page]), Err(ReadError));
        // SAFETY: nobody else uses the pages.
        let done = unsafe { own.read(source.as_ptr().addr() as u64, start.add(100), page) };
        assert_eq!(done, Err(ReadError));
        assert_eq!(try_read(&own, usize::MAX - 5, &mut target[..100]), Err(ReadError));
    }
}
