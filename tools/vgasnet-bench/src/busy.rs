//! A machine shared with other computations.

use nix::sys::signal::SigSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Threads that compute until this is dropped.
pub struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    pub fn start(threads: u16) -> Busy {
        let is_over = Arc::new(AtomicBool::new(false));
        let compute = |is_over: Arc<AtomicBool>| {
            // Signals belong to the launcher. A thread that does not block them might receive one.
            let blocked = SigSet::all().thread_block();
            while blocked.is_ok() && !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let threads = (0..threads).map(|_| {
            std::thread::spawn({
                let is_over = Arc::clone(&is_over);
                move || compute(is_over)
            })
        });
        Busy { threads: threads.collect(), is_over }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread does nothing that could panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::resource::{UsageWho, getrusage};
    use std::time::{Duration, Instant};

    fn computed() -> i64 {
        let time = getrusage(UsageWho::RUSAGE_SELF).expect("every process has used something").user_time();
        time.tv_sec() * 1_000_000 + time.tv_usec()
    }

    #[test]
    fn threads_compute_until_it_goes() {
        let (busy, before, begin) = (Busy::start(2), computed(), Instant::now());
        while computed() < before + 50_000 {
            assert!(begin.elapsed() < Duration::from_secs(30), "they do not compute");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(busy);
    }
}
