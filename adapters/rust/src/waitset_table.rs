// SPDX-License-Identifier: Apache-2.0
//! The table's waitset functions.
//!
//! SAFETY, of every block below: the header's contract, as in `table`.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ptr::{addr_of, addr_of_mut};
use std::sync::Arc;

use crate::abi::{self, Status as Code};
use crate::table::{context_of, drop_box, hand_out, named, reader_used};
use crate::{guard, Adapter, Trigger, Waitset, Woken};

struct WaitsetObject<A: Adapter> {
    waitset: A::Waitset,
    attached: usize,
    trigger: Arc<dyn Trigger>,
    _context: Arc<A::Context>,
}

pub(crate) extern "C" fn waitset_create<A: Adapter>(
    context: *mut abi::ContextHandle,
    out: *mut *mut abi::WaitsetHandle,
) -> Code {
    guard::call("waitset_create", || {
        let context = context_of::<A>(context);
        let waitset = named::<A, _>(A::waitset(context))?;
        let trigger = waitset.trigger();
        Ok(hand_out(WaitsetObject::<A> { waitset, attached: 0, trigger, _context: context.clone() }, out))
    })
}

fn waitset_of<'a, A: Adapter>(handle: *mut abi::WaitsetHandle) -> &'a mut A::Waitset {
    unsafe { &mut *addr_of_mut!((*handle.cast::<WaitsetObject<A>>()).waitset) }
}

pub(crate) extern "C" fn waitset_attach<A: Adapter>(
    handle: *mut abi::WaitsetHandle,
    reader: *mut abi::ReaderHandle,
) -> Code {
    guard::call("waitset_attach", || {
        let reader = &mut reader_used::<A>(reader).reader;
        named::<A, _>(waitset_of::<A>(handle).attach(reader))?;
        *attached::<A>(handle) += 1;
        Ok(abi::OK)
    })
}

fn attached<'a, A: Adapter>(handle: *mut abi::WaitsetHandle) -> &'a mut usize {
    unsafe { &mut *addr_of_mut!((*handle.cast::<WaitsetObject<A>>()).attached) }
}

pub(crate) extern "C" fn waitset_wait_ready<A: Adapter>(
    handle: *mut abi::WaitsetHandle,
    until_ns: i64,
    ready: *mut u32,
    max: u32,
    count: *mut u32,
) -> Code {
    guard::call("waitset_wait_ready", || {
        let waitset = waitset_of::<A>(handle);
        let woken = named::<A, _>(waitset.wait(until_ns))?;
        let mut named = 0;
        for place in 0..*attached::<A>(handle) {
            if woken == Woken::Ready && named < max && waitset.is_ready(place) {
                unsafe { ready.add(named as usize).write(place as u32) };
                named += 1;
            }
        }
        unsafe { *count = named };
        Ok(if woken == Woken::Ready { abi::OK } else { abi::TIMEOUT })
    })
}

pub(crate) extern "C" fn waitset_wait<A: Adapter>(handle: *mut abi::WaitsetHandle, until_ns: i64) -> Code {
    guard::call("waitset_wait", || {
        Ok(match named::<A, _>(waitset_of::<A>(handle).wait(until_ns))? {
            Woken::Ready => abi::OK,
            Woken::TimedOut => abi::TIMEOUT,
        })
    })
}

pub(crate) extern "C" fn waitset_trigger<A: Adapter>(handle: *mut abi::WaitsetHandle) {
    guard::end("waitset_trigger", || {
        unsafe { &*addr_of!((*handle.cast::<WaitsetObject<A>>()).trigger) }.trigger();
    });
}

pub(crate) extern "C" fn waitset_destroy<A: Adapter>(handle: *mut abi::WaitsetHandle) {
    drop_box::<WaitsetObject<A>, _>("waitset_destroy", handle);
}
