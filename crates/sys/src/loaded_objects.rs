//! The program and its shared libraries in the dynamic linker's memory, and the slots through which each calls
//! functions of the others.
//!
//! Source: System V ABI, "Dynamic Linking", with the relocations of x86-64 and AArch64.

use super::futex;
use std::ffi::{CStr, c_int, c_void};
use std::mem::size_of;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Relocations that fill a slot with a function's address: `R_*_GLOB_DAT` and `R_*_JUMP_SLOT`.
#[cfg(target_arch = "x86_64")]
const SLOT_TYPES: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const SLOT_TYPES: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SLOT_TYPES: [u32; 0] = [];

/// The relocation of an address in the program's data, as in a table of functions: `R_X86_64_64`, `R_AARCH64_ABS64`.
const DATA_TYPE: u32 = if cfg!(target_arch = "aarch64") { 257 } else { 1 };

/// Whether [`Object::slots`] knows this processor's relocations.
pub(super) const HAS_SLOTS: bool = !SLOT_TYPES.is_empty();

/// Tags in the dynamic section, by their names in the ABI.
const DT_PLTRELSZ: usize = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_STRSZ: usize = 10;
const DT_PLTREL: usize = 20;
const DT_JMPREL: usize = 23;
const TAGS: usize = 24;

/// A relocation with addend, `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

/// An object while [`each_object`] visits it.
pub(super) struct Object<'a> {
    info: &'a libc::dl_phdr_info,
    headers: &'a [libc::Elf64_Phdr],
}

/// Number of objects loaded and unloaded since the program's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    loaded: u64,
    unloaded: u64,
}

impl Changes {
    /// Whether objects have been unloaded since then.
    pub(super) fn has_unloaded_since(self, then: Changes) -> bool {
        self.unloaded != then.unloaded
    }
}

/// Visits the loaded objects in symbol search order, dlopen's last, until `visit` breaks. No object is unloaded
/// meanwhile, and only one thread visits at a time. Objects being loaded by another thread are included. `visit` must
/// not panic.
pub(super) fn each_object<F: FnMut(&Object<'_>) -> ControlFlow<()>>(mut visit: F) {
    unsafe extern "C" fn visit_one<F: FnMut(&Object<'_>) -> ControlFlow<()>>(
        info: *mut libc::dl_phdr_info,
        _: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes on the pointer given to it below, and an object's description.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<F>()) };
        // SAFETY: the object has as many headers there.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        c_int::from(visit(&Object { info, headers }).is_break())
    }
    // SAFETY: the function has the expected type, and gets the pointer to `visit`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit_one::<F>), (&raw mut visit).cast()) };
}

impl Object<'_> {
    pub(super) fn base(&self) -> usize {
        self.info.dlpi_addr as usize
    }

    pub(super) fn changes(&self) -> Changes {
        Changes { loaded: self.info.dlpi_adds, unloaded: self.info.dlpi_subs }
    }

    /// Whether this is the program itself, which has no name.
    pub(super) fn is_program(&self) -> bool {
        // SAFETY: the name is null or a terminated string.
        self.info.dlpi_name.is_null() || unsafe { self.info.dlpi_name.read() } == 0
    }

    /// Whether this is the dynamic linker.
    pub(super) fn is_linker(&self) -> bool {
        // SAFETY: the call takes a number.
        self.base() != 0 && self.base() == unsafe { libc::getauxval(libc::AT_BASE) } as usize
    }

    fn addresses_of(&self, header: &libc::Elf64_Phdr) -> Range<usize> {
        let start = self.base().wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    }

    /// The range from its lowest address to its highest.
    pub(super) fn span(&self) -> Range<usize> {
        let loads = || self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loads().map(|header| self.addresses_of(header).start).min().unwrap_or(0);
        start..loads().map(|header| self.addresses_of(header).end).max().unwrap_or(0)
    }

    /// The array of `len` at an address, if it lies in the object.
    fn array<T>(&self, address: usize, len: usize) -> Option<&[T]> {
        let end = address.checked_add(len.checked_mul(size_of::<T>())?)?;
        let is_load = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0;
        let mut loads = self.headers.iter().filter(is_load).map(|header| self.addresses_of(header));
        let is_here = address % align_of::<T>() == 0 && loads.any(|range| range.start <= address && end <= range.end);
        // SAFETY: the range is a loaded part of the object, and stays so during the visit. All bits are a value of the
        // types in use here. The dynamic linker has written these bytes before anybody could visit.
        is_here.then(|| unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), len) })
    }

    /// The values in the dynamic section, by tag.
    fn dynamic(&self) -> Option<[usize; TAGS]> {
        let header = self.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let range = self.addresses_of(header);
        let entries = self.array::<[usize; 2]>(range.start, range.len() / size_of::<[usize; 2]>())?;
        let mut values = [0; TAGS];
        for [tag, value] in entries.iter().take_while(|[tag, _]| *tag != 0).filter(|[tag, _]| *tag < TAGS) {
            values[*tag] = *value;
        }
        Some(values)
    }

    /// An address in the dynamic section. Most dynamic linkers make it one in memory, some leave it as in the file.
    fn address(&self, value: usize) -> usize {
        if value < self.base() { self.base() + value } else { value }
    }

    /// The slots for imported functions, with the functions' names.
    pub(super) fn slots(&self, mut found: impl FnMut(&CStr, Slot)) {
        let Some(dynamic) = self.dynamic() else { return };
        let strings = self.array::<u8>(self.address(dynamic[DT_STRTAB]), dynamic[DT_STRSZ]).unwrap_or(&[]);
        let plt_is_rela = dynamic[DT_PLTREL] == DT_RELA;
        let plt = (dynamic[DT_JMPREL], if plt_is_rela { dynamic[DT_PLTRELSZ] } else { 0 });
        for (table, len_bytes) in [(dynamic[DT_RELA], dynamic[DT_RELASZ]), plt] {
            let table = self.array::<Relocation>(self.address(table), len_bytes / size_of::<Relocation>());
            for relocation in table.unwrap_or(&[]) {
                let kind = relocation.info as u32;
                let is_data = kind == DATA_TYPE;
                if !(SLOT_TYPES.contains(&kind) || is_data) || relocation.addend != 0 {
                    continue;
                }
                let at = (relocation.info >> 32) as usize * size_of::<libc::Elf64_Sym>();
                let Some([symbol]) = self.array::<libc::Elf64_Sym>(self.address(dynamic[DT_SYMTAB]) + at, 1) else {
                    continue;
                };
                // A symbol defined by the object is its own function, whatever the name.
                let is_taken = symbol.st_shndx == 0;
                let name = strings
                    .get(symbol.st_name as usize..)
                    .and_then(|remaining| CStr::from_bytes_until_nul(remaining).ok());
                let address = self.base().wrapping_add(relocation.offset);
                if let (true, Some(name), true) = (is_taken, name, self.has_word(address)) {
                    found(name, Slot { address, is_closed: self.is_closed(address), is_data });
                }
            }
        }
    }

    /// Whether an address is of a word of the object's data, which the dynamic linker may write, or could at first.
    fn has_word(&self, address: usize) -> bool {
        let is_data = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0;
        let mut data = self.headers.iter().filter(is_data).map(|header| self.addresses_of(header));
        data.any(|range| range.contains(&address)) && self.array::<usize>(address, 1).is_some()
    }

    /// Whether the dynamic linker makes an address read-only once it has filled the object's slots (RELRO).
    fn is_closed(&self, address: usize) -> bool {
        let page_bytes = page_bytes();
        let mut ranges = self.headers.iter().filter(|header| header.p_type == libc::PT_GNU_RELRO);
        ranges.any(|header| {
            let Range { start, end } = self.addresses_of(header);
            (start / page_bytes * page_bytes..end / page_bytes * page_bytes).contains(&address)
        })
    }
}

/// The size of the system's pages.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: the call takes a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// A word with the address of another object's function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    address: usize,
    is_closed: bool,
    /// The program may have put another function there.
    is_data: bool,
}

impl Slot {
    fn place(&self) -> *const AtomicUsize {
        std::ptr::with_exposed_provenance(self.address)
    }

    /// Stores an address in place of one in `replaced`, or of any address if only the dynamic linker writes there.
    /// Returns whether it is stored. The system may refuse it. Nor can it be stored while the dynamic linker fills the
    /// slots of the object, because the page must stay writable then.
    ///
    /// # Safety
    /// [`each_object`] is visiting, the slot's object is still loaded, and `function` has the type expected by the
    /// object's code.
    pub(super) unsafe fn fill(&self, function: usize, replaced: &Range<usize>) -> bool {
        // SAFETY: the slot is an aligned word of a loaded object.
        let place = unsafe { &*self.place() };
        let there = place.load(Ordering::Relaxed);
        if there == function || self.is_data && !replaced.contains(&there) {
            return true;
        }
        if futex::is_writable(self.place().cast()) {
            if !self.is_closed {
                place.store(function, Ordering::Release);
            }
            return !self.is_closed;
        }
        let page_bytes = page_bytes();
        let page = std::ptr::with_exposed_provenance_mut(self.address / page_bytes * page_bytes);
        // SAFETY: the page is one of the object's data, and nobody depends on it being read-only.
        if unsafe { libc::mprotect(page, page_bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return false;
        }
        place.store(function, Ordering::Release);
        // SAFETY: this restores the page.
        unsafe { libc::mprotect(page, page_bytes, libc::PROT_READ) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() {}

    #[test]
    fn the_program_comes_first_and_has_this_code() {
        let mut at = 0;
        each_object(|object| {
            let is_here = object.span().contains(&(nothing as fn() as usize));
            assert_eq!((object.is_program(), is_here), (at == 0, at == 0));
            at += 1;
            ControlFlow::Continue(())
        });
        assert!(at > 2);
    }

    #[test]
    fn slots_lead_to_the_functions_of_their_names() {
        let real = libc::dl_iterate_phdr as *const () as usize;
        let mut found = 0;
        each_object(|object| {
            object.slots(|name, slot| {
                // SAFETY: the object is loaded during the visit.
                let holds = unsafe { (*slot.place()).load(Ordering::Relaxed) };
                found += usize::from(object.is_program() && name == c"dl_iterate_phdr" && holds == real);
            });
            ControlFlow::Continue(())
        });
        assert!(found > 0 || !HAS_SLOTS);
    }

    #[test]
    fn closed_pages_are_opened_for_the_time_of_a_change() {
        let bytes = page_bytes();
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping at an address chosen by the system.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let address = page.expose_provenance();
        let [open, closed] = [false, true].map(|is_closed| Slot { address: address + 8, is_closed, is_data: false });
        let data = Slot { is_data: true, ..open };
        // SAFETY: the mapping stands for a loaded object, and nobody calls its contents.
        unsafe {
            let value = || (*open.place()).load(Ordering::Relaxed);
            assert!(open.fill(1, &(0..0)) && value() == 1);
            assert!(data.fill(7, &(2..9)) && value() == 1, "the program has put it there");
            assert!(data.fill(9, &(1..2)) && value() == 9);
            assert!(!closed.fill(2, &(0..0)) && value() == 9, "its object is being loaded");
            assert_eq!(libc::mprotect(page, bytes, libc::PROT_READ), 0);
            assert!(closed.fill(3, &(0..0)) && value() == 3);
            assert!(!futex::is_writable(closed.place().cast()));
            assert_eq!(libc::munmap(page, bytes), 0);
        }
    }
}
