// SPDX-License-Identifier: Apache-2.0
//! Two ways for a thread to wait: a futex for events within this process, and poll(2) for descriptors.
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use crate::{now_ns, Doing, Error, Result, Trigger, Woken};

const NS_PER_S: i64 = 1_000_000_000;

/// Any thread rings, one thread waits. Ringing makes a system call only if a thread is sleeping.
#[derive(Debug, Default)]
pub struct Bell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

impl Bell {
    /// How often it has rung. Read this before checking the condition to wait for.
    #[inline]
    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Wakes the sleeping thread, or ends the next sleep that has seen fewer rings.
    #[inline]
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            // SAFETY: the word lives as long as self; a wake-up touches no memory.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.rings.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    i32::MAX,
                )
            };
        }
    }

    /// Sleeps until it has rung more often than `seen`, or until host time `until_ns`. May end early.
    pub fn sleep(&self, seen: u32, until_ns: i64) {
        let until = timespec(until_ns);
        let until = if until_ns == i64::MAX { ptr::null() } else { ptr::from_ref(&until) };
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // SAFETY: word and time live until the call returns. FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.rings.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                seen,
                until,
                ptr::null::<u32>(),
                u32::MAX,
            );
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A descriptor that any thread makes readable and the waiting thread drains.
#[derive(Debug)]
pub struct Knock(OwnedFd);

impl Trigger for Knock {
    fn trigger(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a live variable. It fails only if the counter is full, and then it is readable anyway.
        let _ = unsafe { libc::write(self.0.as_raw_fd(), ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }
}

impl Knock {
    fn new() -> Result<Self> {
        // SAFETY: takes no memory.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error()).doing("making an eventfd");
        }
        // SAFETY: just created, and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    fn empty(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes of a live variable; it does not block.
        let _ = unsafe { libc::read(self.0.as_raw_fd(), ptr::from_mut(&mut count).cast(), size_of::<u64>()) };
    }
}

/// Descriptors to wait for with poll(2), and a knock that ends the wait.
#[derive(Debug)]
pub struct Poller {
    knock: Arc<Knock>,
    polled: Vec<libc::pollfd>,
}

// pollfd is plain numbers, so Poller is Send by itself.
impl Poller {
    /// A poller with no descriptor but the knock's.
    pub fn new() -> Result<Self> {
        let knock = Arc::new(Knock::new()?);
        let polled = vec![readable(knock.0.as_raw_fd())];
        Ok(Self { knock, polled })
    }

    /// Adds a descriptor that stays open as long as this lives; returns its place.
    pub fn add(&mut self, descriptor: i32) -> usize {
        self.polled.push(readable(descriptor));
        self.polled.len() - 2
    }

    /// Ends a wait from another thread.
    pub fn knock(&self) -> Arc<Knock> {
        self.knock.clone()
    }

    /// Waits until a descriptor is readable, somebody knocks, or host time `until_ns`. After `Ready`,
    /// `is_ready` says which.
    pub fn wait(&mut self, until_ns: i64) -> Result<Woken> {
        loop {
            let left = timespec((until_ns.saturating_sub(now_ns())).max(0));
            let left = if until_ns == i64::MAX { ptr::null() } else { ptr::from_ref(&left) };
            // SAFETY: pointer and count are those of the vector; no signal mask is given.
            let count = unsafe {
                libc::ppoll(self.polled.as_mut_ptr(), self.polled.len() as libc::nfds_t, left, ptr::null())
            };
            if count > 0 {
                if self.polled[0].revents != 0 {
                    self.knock.empty();
                }
                return Ok(Woken::Ready);
            }
            if count == 0 {
                return Ok(Woken::TimedOut);
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(Error::failed(format!("poll: {error}")));
            }
        }
    }

    /// Whether there was a knock before the last wait ended.
    #[inline]
    pub fn was_knocked(&self) -> bool {
        self.polled[0].revents != 0
    }

    /// Whether the descriptor that `add` gave this place was readable when the last wait ended.
    #[inline]
    pub fn is_ready(&self, place: usize) -> bool {
        self.polled[place + 1].revents != 0
    }
}

fn readable(descriptor: i32) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

fn timespec(time_ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: time_ns / NS_PER_S, tv_nsec: time_ns % NS_PER_S }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_came_before_ends_the_sleep() {
        let bell = Bell::default();
        let seen = bell.rings();
        bell.ring();
        bell.sleep(seen, i64::MAX);
        assert_ne!(bell.rings(), seen);
    }

    #[test]
    fn a_knock_ends_one_wait_and_the_time_the_next() {
        let mut poller = Poller::new().unwrap();
        poller.knock().trigger();
        assert_eq!((poller.wait(i64::MAX).unwrap(), poller.was_knocked()), (Woken::Ready, true));
        assert_eq!((poller.wait(0).unwrap(), poller.was_knocked()), (Woken::TimedOut, false));
    }
}
