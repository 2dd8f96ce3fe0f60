// SPDX-License-Identifier: Apache-2.0
//! The panic guard: nothing unwinds into C, and nothing is called again after a panic.
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{abi, host, Result};

/// Set by the first panic of this library: half-done work must not be touched any more.
static POISONED: AtomicBool = AtomicBool::new(false);

/// Runs one call from C; errors and panics become a status and an error text.
#[inline]
pub(crate) fn call(what: &'static str, function: impl FnOnce() -> Result<abi::Status>) -> abi::Status {
    if POISONED.load(Ordering::Relaxed) {
        host::fail(&format!("{what} refused: the adapter panicked before"));
        return abi::FAILED;
    }
    match catch_unwind(AssertUnwindSafe(function)) {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            host::fail(&error.message);
            error.status
        }
        Err(panic) => {
            poison(what, panic.as_ref());
            abi::FAILED
        }
    }
}

/// Runs what must be done even after a panic: releasing and destroying.
pub(crate) fn end(what: &'static str, function: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(function)) {
        poison(what, panic.as_ref());
    }
}

/// Runs a callback that the middleware makes on its own thread. A panic fails the trial and poisons the
/// adapter.
#[inline]
pub fn callback(what: &'static str, function: impl FnOnce()) {
    if POISONED.load(Ordering::Relaxed) {
        return;
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(function)) {
        poison(what, panic.as_ref());
    }
}

#[cold]
fn poison(what: &str, panic: &(dyn std::any::Any + Send)) {
    POISONED.store(true, Ordering::Relaxed);
    let said = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    host::fail(&format!("panic in {what}: {said}"));
}
