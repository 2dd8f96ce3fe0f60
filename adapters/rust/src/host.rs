// SPDX-License-Identifier: Apache-2.0
//! What lagometer offers to an adapter: the log, the clock, and error reporting.
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi;

static HOST: AtomicPtr<abi::Host> = AtomicPtr::new(ptr::null_mut());

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// For debugging.
    Debug = 0,
    /// For information.
    Info = 1,
    /// Something is not as it should be.
    Warning = 2,
    /// Something failed.
    Error = 3,
}

/// Keeps the host until the process ends. Returns false if this crate can't work with it.
///
/// # Safety
/// `host` is null or points at a host that lives as long as the process.
pub(crate) unsafe fn keep(host: *const abi::Host) -> bool {
    // SAFETY: not null, and the caller's promise; size and version come first in every version of the struct.
    let fits = !host.is_null()
        && unsafe { (*host).abi_version >= abi::ABI_VERSION && (*host).size as usize >= abi::HOST_SIZE_1_0 };
    if fits {
        // SAFETY: not null, and of the size that it names.
        let whole_host = unsafe { whole(host) };
        // SAFETY: as above.
        let short = unsafe { ((*host).size as usize) < size_of::<abi::Host>() };
        let host = if short { Box::leak(Box::new(whole_host)) } else { host.cast_mut() };
        HOST.store(host, Ordering::Release);
    }
    fits
}

/// A host's struct as this crate knows it. Where the host's is shorter, fields are zero, which means absent.
///
/// # Safety
/// `given` points at a struct whose first field is its `size`, not less than its first version's;
/// zeros are valid for every later field.
pub(crate) unsafe fn whole<Struct>(given: *const Struct) -> Struct {
    let mut whole = MaybeUninit::<Struct>::zeroed();
    // SAFETY: both sides have this many bytes; the rest is zeros.
    unsafe {
        let size = given.cast::<u32>().read() as usize;
        let (from, to) = (given.cast::<u8>(), whole.as_mut_ptr().cast::<u8>());
        ptr::copy_nonoverlapping(from, to, size.min(size_of::<Struct>()));
        whole.assume_init()
    }
}

fn host() -> Option<&'static abi::Host> {
    // SAFETY: null, or what `keep` was given, which lives as long as the process and is never written.
    unsafe { HOST.load(Ordering::Acquire).as_ref() }
}

/// The clock: CLOCK_MONOTONIC, in ns; 0 if no host has loaded this library (in its own tests).
#[inline]
pub fn now_ns() -> i64 {
    host().map_or(0, |host| (host.now_ns)(host.this))
}

/// The CPU that this thread runs on.
#[inline]
pub fn current_cpu() -> u32 {
    // SAFETY: takes nothing and touches no memory of ours.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0xFFFF)
}

/// Logs a line; not allowed between warm-up and drain.
pub fn log(level: Level, message: &str) {
    if let Some(host) = host() {
        (host.log)(host.this, level as u32, text(message));
    }
}

/// Says why the current call on this thread fails. Outside a call: the context is broken and the trial fails.
pub fn fail(message: &str) {
    if let Some(host) = host() {
        (host.fail)(host.this, text(message));
    }
}

/// Text for C, valid during a call.
pub(crate) const fn text(text: &str) -> abi::Text {
    abi::Text { data: text.as_ptr(), size: text.len() as u64 }
}

/// A copy of text from C; replaces what is not UTF-8.
///
/// # Safety
/// `text.data` is null or points at `text.size` bytes.
pub(crate) unsafe fn owned(text: abi::Text) -> String {
    if text.data.is_null() || text.size == 0 {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(text.data, text.size as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}
