//! The functions of `types.c`, by safe names. Handles are 8 bytes.

use crate::layout::Layout;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use vgasnet_mpi_front::kind::Datatype;
use vgasnet_mpi_front::{Handle, SUCCESS};

/// MPI's description of a datatype: `struct about` of `types.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    pub size: i64,
    pub low: i64,
    pub extent: i64,
    pub true_low: i64,
    pub true_extent: i64,
    pub kind: i32,
    pub is_short_int: i32,
    pub integers: i32,
    pub addresses: i32,
    pub counts: i32,
    pub types: i32,
}

unsafe extern "C" {
    fn vgasnet_mpi_io_type_about(handle: u64, about: *mut About) -> c_int;
    fn vgasnet_mpi_io_type_contents(handle: u64, about: *const About, numbers: *mut i64, types: *mut u64) -> c_int;
    fn vgasnet_mpi_io_type_done(handle: u64);
    fn vgasnet_mpi_io_prepare_types() -> c_int;
    fn vgasnet_mpi_io_type_is_committed(handle: u64) -> c_int;
    fn vgasnet_mpi_io_known_layout(handle: u64) -> *mut c_void;
    fn vgasnet_mpi_io_keep_layout(handle: u64, layout: *mut c_void) -> c_int;
}

/// MPI's description of a datatype.
pub fn about(datatype: Handle<Datatype>) -> Option<About> {
    let mut about = About::default();
    // SAFETY: MPI may be called by the type's handle, and there is room for the description.
    (unsafe { vgasnet_mpi_io_type_about(datatype.bits(), &mut about) } == SUCCESS).then_some(about)
}

/// Whether data may be moved with a datatype.
pub fn is_committed(datatype: Handle<Datatype>) -> bool {
    // SAFETY: MPI may be called by the handle, and checks it.
    (unsafe { vgasnet_mpi_io_type_is_committed(datatype.bits()) }) != 0
}

/// The arguments with which a derived datatype was made.
#[derive(Debug)]
pub struct Contents {
    pub numbers: Vec<i64>,
    /// They are given back to MPI at the end.
    types: Vec<Handle<Datatype>>,
}

impl Contents {
    /// The contained types.
    pub fn types(&self) -> &[Handle<Datatype>] {
        &self.types
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        // SAFETY: MPI has returned these types to be given back once, and nobody else has their handles.
        self.types.iter().for_each(|inner| unsafe { vgasnet_mpi_io_type_done(inner.bits()) });
    }
}

/// The arguments with which a derived datatype was made.
pub fn contents(datatype: Handle<Datatype>, about: &About) -> Option<Contents> {
    let numbers = (about.integers + about.addresses + about.counts) as usize;
    let mut contents = Contents { numbers: vec![0; numbers], types: Vec::new() };
    let mut types = vec![0; about.types as usize];
    let numbers = contents.numbers.as_mut_ptr();
    // SAFETY: MPI may be called by the type's handle. There is room for the numbers and types of the description, and
    // MPI returns no more.
    let error = unsafe { vgasnet_mpi_io_type_contents(datatype.bits(), about, numbers, types.as_mut_ptr()) };
    (error == SUCCESS).then(|| {
        // SAFETY: MPI has returned these types, which exist until they are given back.
        contents.types = types.into_iter().map(|inner| unsafe { Handle::new(inner) }).collect();
        contents
    })
}

/// Prepares the attribute that keeps layouts. Once, while MPI runs.
pub fn prepare() -> bool {
    // SAFETY: MPI runs, and the layer's functions were found.
    unsafe { vgasnet_mpi_io_prepare_types() == SUCCESS }
}

/// The layout kept by a type.
pub fn known_layout(datatype: Handle<Datatype>) -> Option<Arc<Layout>> {
    // SAFETY: MPI may be called by the type's handle.
    let layout = unsafe { vgasnet_mpi_io_known_layout(datatype.bits()) }.cast_const().cast::<Layout>();
    if layout.is_null() {
        return None;
    }
    // SAFETY: `keep_layout` made it from an `Arc`. The type holds a count of it until it is freed, and while the handle
    // is used here, the program does not free the type.
    unsafe {
        Arc::increment_strong_count(layout);
        Some(Arc::from_raw(layout))
    }
}

/// Makes a type keep a layout, unless it has one. Returns the type's layout.
pub fn keep_layout(datatype: Handle<Datatype>, layout: Arc<Layout>) -> Arc<Layout> {
    // A replaced layout is dropped, although another thread may have just found it.
    static KEEPING: Mutex<()> = Mutex::new(());
    let _keeping = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known_layout(datatype) {
        return known;
    }
    let kept = Arc::into_raw(Arc::clone(&layout)).cast_mut().cast();
    // SAFETY: MPI may be called by the type's handle. `vgasnet_mpi_io_drop_layout` takes the layout back.
    if unsafe { vgasnet_mpi_io_keep_layout(datatype.bits(), kept) } != SUCCESS {
        // SAFETY: it is a layout's, and MPI has refused it, so this is its one use.
        unsafe { vgasnet_mpi_io_drop_layout(kept) };
    }
    layout
}

/// Called by the layer when MPI frees a type with a layout.
///
/// # Safety
/// `layout` was passed to MPI by [`keep_layout`]. This is the one call for it, and the last use.
#[unsafe(no_mangle)]
unsafe extern "C" fn vgasnet_mpi_io_drop_layout(layout: *mut c_void) {
    // SAFETY: it came from `Arc::into_raw`, and is taken back once, as the caller promises.
    drop(unsafe { Arc::from_raw(layout.cast_const().cast::<Layout>()) });
}
