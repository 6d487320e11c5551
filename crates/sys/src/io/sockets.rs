//! `send`, `recv` and their kin. Sends with MSG_ZEROCOPY are passed on unchanged: the kernel keeps the pages of the
//! call's own memory.

use super::descriptors::{split_rules_of, vector};
use super::pieces::{Direction, SplitRules, carry};
use super::{next, slice, touch, touches};
use crate::errno::keep_errno;
use libc::{iovec, mmsghdr, msghdr, sockaddr, timespec};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The rules for a receive with these flags.
fn receiving(socket: c_int, flags: c_int) -> SplitRules {
    let rules = split_rules_of(socket, Direction::In);
    let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    SplitRules { goes_on: waits_for_all && !rules.is_message(), ..rules }
}

/// Whether the kernel would go on reading the memory after a call with these flags, which excludes a buffer. Without
/// `SO_ZEROCOPY` it ignores `MSG_ZEROCOPY`.
fn keeps_memory(socket: c_int, flags: c_int) -> bool {
    if flags & libc::MSG_ZEROCOPY == 0 {
        return false;
    }
    let (mut is_set, mut len_bytes): (c_int, libc::socklen_t) = (1, size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the answer has room for a number, which stays 1 if there is none.
    keep_errno(|| unsafe {
        let answer = (&raw mut is_set).cast();
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, answer, &raw mut len_bytes)
    });
    is_set != 0
}

/// `message` with these vectors as its bytes.
fn with_vectors(message: &msghdr, vectors: &[iovec]) -> msghdr {
    msghdr { msg_iov: vectors.as_ptr().cast_mut(), msg_iovlen: vectors.len(), ..*message }
}

/// A message without bytes, for a peer with this address.
fn message_for(name: *mut c_void, name_len: u32) -> msghdr {
    // SAFETY: a message may be all zeros.
    let empty: msghdr = unsafe { std::mem::zeroed() };
    msghdr { msg_name: name, msg_namelen: name_len, ..empty }
}

/// Sends the bytes of `memory` with the other fields of `message`.
///
/// # Safety
/// As for the C library's `sendmsg`.
unsafe fn send_message(socket: c_int, memory: &[iovec], message: &msghdr, flags: c_int) -> isize {
    // SAFETY: the memory is the caller's to read.
    unsafe {
        carry(memory, split_rules_of(socket, Direction::Out), |piece, done| {
            let mut message = with_vectors(message, piece);
            if done > 0 {
                // Control messages, such as descriptors, are sent once.
                (message.msg_control, message.msg_controllen) = (null_mut(), 0);
            }
            next::sendmsg::call(socket, &raw const message, flags)
        })
    }
}

/// Receives bytes into `memory`, and the other fields into `message`.
///
/// # Safety
/// As for the C library's `recvmsg`.
unsafe fn receive_message(socket: c_int, memory: &[iovec], message: &mut msghdr, flags: c_int) -> isize {
    // SAFETY: the memory is the caller's to write.
    unsafe {
        carry(memory, receiving(socket, flags), |piece, done| {
            let mut received = with_vectors(message, piece);
            if done > 0 {
                (received.msg_control, received.msg_controllen) = (null_mut(), 0);
            }
            let answer = next::recvmsg::call(socket, &raw mut received, flags);
            if answer >= 0 && done == 0 {
                (message.msg_namelen, message.msg_controllen) = (received.msg_namelen, received.msg_controllen);
                message.msg_flags = received.msg_flags;
            }
            answer
        })
    }
}

/// Whether the message lies in the segment, or memory of its bytes does.
///
/// # Safety
/// The message has as many vectors as it says.
unsafe fn touches_segment(message: &msghdr) -> bool {
    // SAFETY: there are as many vectors.
    touches(std::ptr::from_ref(message).cast(), size_of::<msghdr>())
        || unsafe { touch(message.msg_iov, message.msg_iovlen) }
}

/// As POSIX `send`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(socket: c_int, from: *const c_void, len: usize, flags: c_int) -> isize {
    if !touches(from, len) || keeps_memory(socket, flags) {
        // SAFETY: `from` is valid for reads of `len` bytes, as `send` demands.
        return unsafe { next::send::call(socket, from, len, flags) };
    }
    // SAFETY: the memory is the caller's to read.
    unsafe { send_message(socket, &vector(from, len), &message_for(null_mut(), 0), flags) }
}

/// As POSIX `sendto`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    socket: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
    name: *const sockaddr,
    name_len: u32,
) -> isize {
    if !touches(from, len) || keeps_memory(socket, flags) {
        // SAFETY: `from` is valid for reads of `len` bytes, and `name` of `name_len`, as `sendto` demands.
        return unsafe { next::sendto::call(socket, from, len, flags, name, name_len) };
    }
    // SAFETY: the memory is the caller's to read.
    unsafe { send_message(socket, &vector(from, len), &message_for(name.cast_mut().cast(), name_len), flags) }
}

/// As POSIX `recv`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(socket: c_int, to: *mut c_void, len: usize, flags: c_int) -> isize {
    if !touches(to, len) {
        // SAFETY: `to` is valid for writes of `len` bytes, as `recv` demands.
        return unsafe { next::recv::call(socket, to, len, flags) };
    }
    // SAFETY: the memory is the caller's to write.
    unsafe { receive_message(socket, &vector(to, len), &mut message_for(null_mut(), 0), flags) }
}

/// As POSIX `recvfrom`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvfrom(
    socket: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
    name: *mut sockaddr,
    name_len: *mut u32,
) -> isize {
    if !touches(to, len) {
        // SAFETY: `to` is valid for writes of `len` bytes, and `name` of as many as `name_len` says, as `recvfrom`
        // demands.
        return unsafe { next::recvfrom::call(socket, to, len, flags, name, name_len) };
    }
    // SAFETY: the length is valid, or null if no name is wanted.
    unsafe {
        let room = if name.is_null() { 0 } else { name_len.as_ref().copied().unwrap_or_default() };
        let mut message = message_for(name.cast(), room);
        let answer = receive_message(socket, &vector(to, len), &mut message, flags);
        if let Some(name_len) = name_len.as_mut().filter(|_| answer >= 0 && !name.is_null()) {
            *name_len = message.msg_namelen;
        }
        answer
    }
}

/// As POSIX `sendmsg`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> isize {
    // SAFETY: the message is valid, and has as many vectors; the memory is the caller's to read.
    unsafe {
        let is_carried = |its: &&msghdr| touches_segment(its) && !keeps_memory(socket, flags);
        let Some(its) = message.as_ref().filter(is_carried) else {
            return next::sendmsg::call(socket, message, flags);
        };
        send_message(socket, slice(its.msg_iov, its.msg_iovlen), its, flags)
    }
}

/// As POSIX `recvmsg`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> isize {
    // SAFETY: the message is valid, and has as many vectors; the memory is the caller's to write.
    unsafe {
        let Some(its) = message.as_mut().filter(|its| touches_segment(its)) else {
            return next::recvmsg::call(socket, message, flags);
        };
        receive_message(socket, slice(its.msg_iov, its.msg_iovlen), its, flags)
    }
}

/// Whether some of the messages' vectors overlap the segment.
///
/// # Safety
/// The messages are valid for reads.
unsafe fn any_touch(messages: *const mmsghdr, count: c_uint) -> bool {
    (0..count as usize).any(|at| {
        // SAFETY: there are as many messages, and they are valid.
        unsafe { touches_segment(&(*messages.add(at)).msg_hdr) }
    })
}

/// As sendmmsg(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(socket: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    // SAFETY: the messages are valid for reads and writes.
    unsafe {
        if !any_touch(messages, count) || keeps_memory(socket, flags) {
            return next::sendmmsg::call(socket, messages, count, flags);
        }
        for at in 0..count as usize {
            let message = &mut *messages.add(at);
            let answer = sendmsg(socket, &raw const message.msg_hdr, flags);
            if answer < 0 {
                return if at > 0 { at as c_int } else { -1 };
            }
            message.msg_len = answer as c_uint;
        }
    }
    count as c_int
}

/// As recvmmsg(2).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    socket: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the messages are valid for reads and writes, the time-out for reads.
    unsafe {
        if !any_touch(messages, count) {
            return next::recvmmsg::call(socket, messages, count, flags, timeout);
        }
        // The time is checked after each message, as the kernel does it.
        let patience = timeout.as_ref().map(|time| Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
        let end = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut flags = flags;
        for at in 0..count as usize {
            let message = &mut *messages.add(at);
            let answer = recvmsg(socket, &raw mut message.msg_hdr, flags & !libc::MSG_WAITFORONE);
            if answer < 0 {
                return if at > 0 { at as c_int } else { -1 };
            }
            message.msg_len = answer as c_uint;
            if end.is_some_and(|end| Instant::now() >= end) {
                return at as c_int + 1;
            }
            if flags & libc::MSG_WAITFORONE != 0 {
                flags |= libc::MSG_DONTWAIT;
            }
        }
    }
    count as c_int
}
