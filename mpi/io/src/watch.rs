//! Watches cached files open for writing for other writers: a thread checks regularly for guests (`claims.rs`), for
//! processes without claims (`company.rs`), for calls of second handles that pages cannot serve (`sharing.rs`), and for a
//! rank that ends the job (`rescue.rs`). If there is one, the team hands the file over (`through.rs`), by threads of its
//! own, since the program may be anywhere meanwhile.

use crate::cached_files::{CachedFile, has_closing, shared_with};
use crate::claims::Claim;
use crate::company::Permit;
use crate::direct::Direct;
use crate::hold::Hold;
use crate::{rescue, running, say, threads};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::File;

/// Interval between two rounds of checks. A guest waits for the check of its file, and for the write-back of the team's
/// dirty bytes.
const PERIOD: Duration = Duration::from_millis(10);

/// Maximum number of files checked per round. A check is a system call or a probe, so this bounds the cost of idle
/// files.
const LOOKS: usize = 16;

/// Number of attempts of a failing sync, and the interval between them. A sync is collective and fails on all ranks, so
/// all ranks count alike; clocks would differ.
const TRIES: u32 = 40;
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// Messages in a file's own communicator: hold it after this many joint calls; it is held and synced; go on.
const HOLD: u16 = 1;
const SYNCED: u16 = 2;
const GO_ON: u16 = 3;

struct Watched {
    files: VecDeque<Arc<CachedFile>>,
    has_thread: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { files: VecDeque::new(), has_thread: false });
static HAS_FILES: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watched() -> MutexGuard<'static, Watched> {
    lock(&WATCHED)
}

/// Watches a file until it is closed or handed over.
pub fn add(file: &Arc<CachedFile>) {
    let mut watched = watched();
    watched.files.push_back(Arc::clone(file));
    if !watched.has_thread {
        watched.has_thread = threads::start("vgasnet-mpi-look", look).is_ok();
    }
    HAS_FILES.notify_one();
}

/// A file is closed. After the return the thread does not use its communicator.
pub fn remove(handle: Handle<File>) {
    watched().files.retain(|file| file.handle != handle);
}

fn look() {
    loop {
        let mut watched = watched();
        while watched.files.is_empty() && !has_closing() {
            watched = HAS_FILES.wait(watched).unwrap_or_else(PoisonError::into_inner);
        }
        for _ in 0..watched.files.len().min(LOOKS) {
            let file = watched.files.pop_front().expect("it was counted");
            match wanted(&file) {
                Some(joint_calls) => start(&file, joint_calls),
                None => watched.files.push_back(file),
            }
        }
        drop(watched);
        rescue::if_job_ends();
        std::thread::sleep(PERIOD);
    }
}

/// Whether the file is to be handed over, and after how many joint calls.
fn wanted(file: &CachedFile) -> Option<u64> {
    if file.comm.rank > 0 {
        return file.comm.has_message(0, HOLD).then(|| file.comm.receive(0, HOLD).ok()).flatten();
    }
    let Hold::Own { claim, permit, .. } = &file.hold else { return None };
    let has_guests = || lock(claim).as_ref().is_some_and(Claim::has_guests);
    let is_revoked = lock(permit).as_ref().is_some_and(Permit::is_revoked);
    let is_wanted = || file.library.is_wanted(file.file) == Ok(1);
    if is_revoked || is_wanted() || has_guests() { file.through.decide_to_hold() } else { None }
}

/// Hands a file over, in a new thread if possible.
fn start(file: &Arc<CachedFile>, joint_calls: u64) {
    let its = Arc::clone(file);
    if threads::start("vgasnet-mpi-hand", move || hand_over(&its, joint_calls)).is_err() {
        hand_over(file, joint_calls);
    }
}

/// Every rank of the team runs this once.
fn hand_over(file: &CachedFile, joint_calls: u64) {
    let others = if file.comm.rank == 0 { 1..file.comm.ranks } else { 0..0 };
    others.clone().for_each(|rank| file.comm.send(rank, HOLD, joint_calls));
    file.through.hold(joint_calls);
    file.queue.wait_until_idle();
    shared_with(file.handle).iter().for_each(|second| second.queue.wait_until_idle());
    let mut synced = file.library.sync(file.file);
    for _ in 1..TRIES {
        if synced.is_ok() {
            break;
        }
        std::thread::sleep(BETWEEN_TRIES);
        synced = file.library.sync(file.file);
    }
    let handed_over = file.library.hand_over(file.file).and_then(|()| file.library.descriptor(file.file));
    let direct = handed_over.and_then(|descriptor| Direct::of(descriptor, file.path.clone()));
    if file.comm.rank > 0 {
        file.comm.send(0, SYNCED, 0);
        let _told = file.comm.receive(0, GO_ON);
    }
    others.clone().for_each(|rank| _ = file.comm.receive(rank, SYNCED));
    if let Hold::Own { claim, permit, .. } = &file.hold {
        if !lock(claim).iter_mut().all(Claim::become_guest) {
            tell_unclaimed(file);
        }
        drop(lock(permit).take());
    }
    others.for_each(|rank| file.comm.send(rank, GO_ON, 0));
    file.through.let_through(direct, synced);
}

fn tell_unclaimed(file: &CachedFile) {
    let (rank, path) = (running::own_rank(), file.path.to_string_lossy());
    say(format_args!(
        "rank {rank}: {path}: this file system locks no further byte of it; if another job caches the file now, bytes may be lost"
    ));
}
