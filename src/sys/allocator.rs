//! The library's own heap.
//!
//! A load or store may miss its page anywhere in the client's code, also in malloc while it has its locks. The thread
//! that fetches the page, which is the faulting thread or the helper, allocates. So the library shares no heap with the
//! client.

#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;
