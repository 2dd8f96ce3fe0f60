// SPDX-License-Identifier: Apache-2.0
//! The table of functions that C calls, for any adapter. Handles are boxes, and `&mut` is handed out per
//! field, so that queries from any thread never touch what one thread at a time uses.
//!
//! SAFETY, of every block below: the header's contract. Handles come from this table and were not destroyed
//! yet, pointers to structs are valid for the call, and functions tagged "one at a time per object" do not
//! overlap.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::{self, addr_of, addr_of_mut};
use std::sync::Arc;

use crate::abi::{self, Status as Code, Table};
use crate::stamps_table::{extension, fill_message, fill_sample};
use crate::waitset_table::*;
use crate::{
    config, guard, host, Adapter, Context, ContextConfig, Counters, Endpoint, Error, Loan, Matched,
    PayloadType,
};
use crate::{Reader, Result, Sample, Sent, Sidecar, Status, Waitset, Writer};

/// The most samples of one reader between take and release.
const TAKEN_MAX: usize = 64;

type LoanOf<A> = <<A as Adapter>::Writer as Writer>::Loan;
pub(crate) type SampleOf<A> = <<A as Adapter>::Reader as Reader>::Sample;

pub(crate) struct NodeObject<A: Adapter> {
    name: String,
    pub(crate) context: Arc<A::Context>,
}

pub(crate) struct WriterObject<A: Adapter> {
    used: WriterUsed<A>,
    status: Arc<dyn Status>,
    payload: PayloadType,
    /// Servers: the reader whose requests it answers; otherwise null.
    requests: *mut abi::ReaderHandle,
    _context: Arc<A::Context>,
}

/// Used by one thread at a time. A loan is dropped before its writer.
pub(crate) struct WriterUsed<A: Adapter> {
    loan: Option<LoanOf<A>>,
    pub(crate) writer: A::Writer,
}

pub(crate) struct ReaderObject<A: Adapter> {
    used: ReaderUsed<A>,
    status: Arc<dyn Status>,
    _context: Arc<A::Context>,
}

/// Used by one thread at a time. Samples are dropped before their reader; each stays in its slot until it is
/// released.
pub(crate) struct ReaderUsed<A: Adapter> {
    taken: Box<[Option<SampleOf<A>>]>,
    free: Vec<usize>,
    pub(crate) reader: A::Reader,
}

/// The table of an adapter.
pub const fn table<A: Adapter>() -> Table {
    Table {
        size: size_of::<Table>() as u32,
        abi_version: abi::ABI_VERSION,
        name: host::text(A::NAME),
        probe: probe::<A>,
        context_create: context_create::<A>,
        context_enable: context_enable::<A>,
        node_create: node_create::<A>,
        type_create: type_create::<A>,
        writer_create: writer_create::<A>,
        writer_enable: writer_enable::<A>,
        reader_create: reader_create::<A>,
        reader_enable: reader_enable::<A>,
        reader_destroy: reader_destroy::<A>,
        writer_destroy: writer_destroy::<A>,
        type_destroy,
        node_destroy: node_destroy::<A>,
        context_destroy: context_destroy::<A>,
        borrow: borrow::<A>,
        commit: commit::<A>,
        discard: discard::<A>,
        take: take::<A>,
        release: release::<A>,
        writer_matched: writer_matched::<A>,
        reader_matched: reader_matched::<A>,
        writer_counters: writer_counters::<A>,
        reader_counters: reader_counters::<A>,
        describe: describe::<A>,
        waitset_create: Some(waitset_create::<A>),
        waitset_attach: Some(waitset_attach::<A>),
        waitset_wait: Some(waitset_wait::<A>),
        waitset_trigger: Some(waitset_trigger::<A>),
        waitset_destroy: Some(waitset_destroy::<A>),
        extension: extension::<A>,
        waitset_wait_ready: if <A::Waitset as Waitset<A::Reader>>::NAMES_READY {
            Some(waitset_wait_ready::<A>)
        } else {
            None
        },
    }
}

/// Implements the exported symbol.
///
/// # Safety
/// `host` is null or points at a host that lives as long as the process.
pub unsafe fn enter(host: *const abi::Host, table: &'static Table) -> *const Table {
    if unsafe { host::keep(host) } {
        table
    } else {
        ptr::null()
    }
}

pub(crate) fn hand_out<Object, Handle>(object: Object, out: *mut *mut Handle) -> Code {
    unsafe { *out = Box::into_raw(Box::new(object)).cast() };
    abi::OK
}

pub(crate) fn drop_box<Object, Handle>(what: &'static str, handle: *mut Handle) {
    if !handle.is_null() {
        guard::end(what, || drop(unsafe { Box::from_raw(handle.cast::<Object>()) }));
    }
}

/// Prefixes the adapter's name, so that an error says which adapter it comes from.
pub(crate) fn named<A: Adapter, T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| Error { message: format!("{}: {}", A::NAME, error.message), ..error })
}

extern "C" fn probe<A: Adapter>(options: abi::Text, sink: abi::Sink, user: *mut c_void) -> Code {
    guard::call("probe", || {
        let sidecar = Sidecar::new(A::SIDECAR);
        sidecar.options(&unsafe { host::owned(options) })?;
        sink(user, host::text(&sidecar.probe(A::VERSION).to_string()));
        Ok(abi::OK)
    })
}

extern "C" fn context_create<A: Adapter>(
    config: *const abi::ContextConfig,
    out: *mut *mut abi::ContextHandle,
) -> Code {
    guard::call("context_create", || {
        let config = unsafe { ContextConfig::read(&Sidecar::new(A::SIDECAR), config) };
        let context = named::<A, _>(config.and_then(A::context))?;
        Ok(hand_out(Arc::new(context), out))
    })
}

pub(crate) fn context_of<'a, A: Adapter>(handle: *mut abi::ContextHandle) -> &'a Arc<A::Context> {
    unsafe { &*handle.cast() }
}

extern "C" fn context_enable<A: Adapter>(handle: *mut abi::ContextHandle) -> Code {
    guard::call("context_enable", || named::<A, _>(context_of::<A>(handle).enable()).map(|()| abi::OK))
}

extern "C" fn context_destroy<A: Adapter>(handle: *mut abi::ContextHandle) {
    drop_box::<Arc<A::Context>, _>("context_destroy", handle);
}

extern "C" fn node_create<A: Adapter>(
    context: *mut abi::ContextHandle,
    name: abi::Text,
    out: *mut *mut abi::NodeHandle,
) -> Code {
    guard::call("node_create", || {
        let name = unsafe { host::owned(name) };
        Ok(hand_out(NodeObject::<A> { name, context: context_of::<A>(context).clone() }, out))
    })
}

extern "C" fn node_destroy<A: Adapter>(handle: *mut abi::NodeHandle) {
    drop_box::<NodeObject<A>, _>("node_destroy", handle);
}

extern "C" fn type_create<A: Adapter>(
    _context: *mut abi::ContextHandle,
    config: *const abi::TypeConfig,
    out: *mut *mut abi::TypeHandle,
) -> Code {
    guard::call("type_create", || {
        Ok(hand_out(unsafe { PayloadType::read(&Sidecar::new(A::SIDECAR), config) }?, out))
    })
}

extern "C" fn type_destroy(handle: *mut abi::TypeHandle) {
    drop_box::<PayloadType, _>("type_destroy", handle);
}

/// The configuration that both kinds of endpoint are created from.
pub(crate) fn endpoint_of<A: Adapter>(
    node: *mut abi::NodeHandle,
    config: *const abi::EndpointConfig,
) -> Result<(&'static NodeObject<A>, Endpoint)> {
    let node: &NodeObject<A> = unsafe { &*node.cast() };
    let config =
        unsafe { config::read("configuration of the endpoint", config, abi::ENDPOINT_CONFIG_SIZE_1_0) }?;
    let payload = unsafe { config.type_.cast::<PayloadType>().as_ref() };
    let payload = *payload.ok_or_else(|| Error::invalid("an endpoint without a type"))?;
    Ok((node, unsafe { Endpoint::read(&node.name, payload, &config) }?))
}

extern "C" fn writer_create<A: Adapter>(
    node: *mut abi::NodeHandle,
    config: *const abi::EndpointConfig,
    out: *mut *mut abi::WriterHandle,
) -> Code {
    guard::call("writer_create", || {
        let (node, endpoint) = named::<A, _>(endpoint_of::<A>(node, config))?;
        let writer = named::<A, _>(A::writer(&node.context, &endpoint))?;
        Ok(hand_out(writer_object(node, &endpoint, writer, ptr::null_mut()), out))
    })
}

pub(crate) fn writer_object<A: Adapter>(
    node: &NodeObject<A>,
    endpoint: &Endpoint,
    writer: A::Writer,
    requests: *mut abi::ReaderHandle,
) -> WriterObject<A> {
    let status = writer.status();
    let used = WriterUsed { loan: None, writer };
    let (payload, _context) = (endpoint.payload, node.context.clone());
    WriterObject { used, status, payload, requests, _context }
}

/// The reader whose requests a server's writer answers; null for any other writer.
pub(crate) fn requests_of<A: Adapter>(handle: *mut abi::WriterHandle) -> *mut abi::ReaderHandle {
    unsafe { *addr_of!((*handle.cast::<WriterObject<A>>()).requests) }
}

pub(crate) fn writer_used<'a, A: Adapter>(handle: *mut abi::WriterHandle) -> &'a mut WriterUsed<A> {
    unsafe { &mut *addr_of_mut!((*handle.cast::<WriterObject<A>>()).used) }
}

extern "C" fn writer_enable<A: Adapter>(handle: *mut abi::WriterHandle) -> Code {
    guard::call("writer_enable", || named::<A, _>(writer_used::<A>(handle).writer.enable()).map(|()| abi::OK))
}

extern "C" fn writer_destroy<A: Adapter>(handle: *mut abi::WriterHandle) {
    drop_box::<WriterObject<A>, _>("writer_destroy", handle);
}

extern "C" fn borrow<A: Adapter>(
    handle: *mut abi::WriterHandle,
    bytes: u64,
    message: *mut abi::Message,
) -> Code {
    guard::call("borrow", || {
        let payload = unsafe { *addr_of!((*handle.cast::<WriterObject<A>>()).payload) };
        let used = writer_used::<A>(handle);
        let bytes = payload.accept(bytes)?;
        used.loan = named::<A, _>(used.writer.borrow(bytes))?;
        let Some(loan) = &mut used.loan else { return Ok(abi::REJECTED) };
        let first = region_of(loan.memory());
        let second = loan.memory_behind().map(region_of);
        let origin = loan.origin() as u32;
        unsafe {
            addr_of_mut!((*message).origin).write(origin);
            addr_of_mut!((*message).region_count).write(1 + u32::from(second.is_some()));
            addr_of_mut!((*message).regions[0]).write(first);
            if let Some(second) = second {
                addr_of_mut!((*message).regions[1]).write(second);
            }
        }
        Ok(abi::OK)
    })
}

fn region_of(memory: crate::Memory<'_>) -> abi::Region {
    abi::Region { data: memory.data, size: memory.size as u64 }
}

extern "C" fn commit<A: Adapter>(handle: *mut abi::WriterHandle, message: *mut abi::Message) -> Code {
    guard::call("commit", || {
        let used = writer_used::<A>(handle);
        let loan = used.loan.take().ok_or_else(|| Error::invalid("commit without borrow"))?;
        let sent = named::<A, _>(used.writer.commit(loan))?;
        fill_message(message, used.writer.stamps());
        Ok(match sent {
            Sent::Accepted => abi::OK,
            Sent::Rejected => abi::REJECTED,
        })
    })
}

extern "C" fn discard<A: Adapter>(handle: *mut abi::WriterHandle, _message: *mut abi::Message) {
    guard::end("discard", || writer_used::<A>(handle).loan = None);
}

extern "C" fn reader_create<A: Adapter>(
    node: *mut abi::NodeHandle,
    config: *const abi::EndpointConfig,
    out: *mut *mut abi::ReaderHandle,
) -> Code {
    guard::call("reader_create", || {
        let (node, endpoint) = named::<A, _>(endpoint_of::<A>(node, config))?;
        let reader = named::<A, _>(A::reader(&node.context, &endpoint))?;
        Ok(hand_out(reader_object(node, reader), out))
    })
}

pub(crate) fn reader_object<A: Adapter>(node: &NodeObject<A>, reader: A::Reader) -> ReaderObject<A> {
    let status = reader.status();
    let taken = std::iter::repeat_with(|| None).take(TAKEN_MAX).collect();
    let used = ReaderUsed { taken, free: (0..TAKEN_MAX).rev().collect(), reader };
    ReaderObject { used, status, _context: node.context.clone() }
}

/// A sample that was taken and not released.
pub(crate) fn taken_sample<'a, A: Adapter>(
    reader: *mut abi::ReaderHandle,
    sample: *const abi::Sample,
) -> Option<&'a mut SampleOf<A>> {
    let slot = unsafe { addr_of!((*sample).adapter_data).read() } as usize;
    reader_used::<A>(reader).taken.get_mut(slot)?.as_mut()
}

pub(crate) fn reader_used<'a, A: Adapter>(handle: *mut abi::ReaderHandle) -> &'a mut ReaderUsed<A> {
    unsafe { &mut *addr_of_mut!((*handle.cast::<ReaderObject<A>>()).used) }
}

extern "C" fn reader_enable<A: Adapter>(handle: *mut abi::ReaderHandle) -> Code {
    guard::call("reader_enable", || named::<A, _>(reader_used::<A>(handle).reader.enable()).map(|()| abi::OK))
}

extern "C" fn reader_destroy<A: Adapter>(handle: *mut abi::ReaderHandle) {
    if handle.is_null() {
        return;
    }
    // A running callback may still take: borrow nothing but the status until it has ended.
    guard::end("reader_destroy", || reader_status::<A>(handle).close());
    drop_box::<ReaderObject<A>, _>("reader_destroy", handle);
}

extern "C" fn take<A: Adapter>(
    handle: *mut abi::ReaderHandle,
    samples: *mut abi::Sample,
    stride: u32,
    max: u32,
    taken: *mut u32,
) -> Code {
    guard::call("take", || {
        let used = reader_used::<A>(handle);
        named::<A, _>(used.reader.prepare(used.free.len().min(max as usize)))?;
        let mut count = 0;
        let mut problem = None;
        while count < max {
            let Some(slot) = used.free.pop() else { break };
            match used.reader.take() {
                Ok(Some(sample)) => {
                    let view = used.taken[slot].insert(sample).view();
                    let shown = unsafe { sample_at(samples, stride, count) };
                    fill(shown, &view, slot);
                    fill_sample(shown, used.reader.stamps());
                    count += 1;
                }
                other => {
                    used.free.push(slot);
                    problem = other.err();
                    break;
                }
            }
        }
        unsafe { *taken = count };
        // First return what was taken; a lasting error comes again with the next call.
        problem.filter(|_| count == 0).map_or(Ok(abi::OK), |error| named::<A, _>(Err(error)))
    })
}

unsafe fn sample_at(samples: *mut abi::Sample, stride: u32, index: u32) -> *mut abi::Sample {
    unsafe { samples.cast::<u8>().add(stride as usize * index as usize) }.cast()
}

#[inline]
fn fill(sample: *mut abi::Sample, view: &crate::View<'_>, slot: usize) {
    let count = view.regions.iter().take_while(|region| !region.is_empty()).count();
    unsafe {
        for (index, region) in view.regions[..count].iter().enumerate() {
            let region = abi::Region { data: region.as_ptr().cast_mut(), size: region.len() as u64 };
            addr_of_mut!((*sample).regions[index]).write(region);
        }
        addr_of_mut!((*sample).flags).write(if view.loaned { abi::SAMPLE_LOANED } else { 0 });
        addr_of_mut!((*sample).region_count).write(count as u32);
        addr_of_mut!((*sample).writer_id).write(0);
        addr_of_mut!((*sample).middleware_sequence).write(view.sequence);
        addr_of_mut!((*sample).source_clock).write(0);
        addr_of_mut!((*sample).reception_clock).write(0);
        addr_of_mut!((*sample).signalled_ns).write(view.signalled.at_ns);
        addr_of_mut!((*sample).signalled_cpu).write(view.signalled.cpu);
        addr_of_mut!((*sample).adapter_data).write(ptr::without_provenance_mut(slot));
    }
}

extern "C" fn release<A: Adapter>(
    handle: *mut abi::ReaderHandle,
    samples: *mut abi::Sample,
    stride: u32,
    count: u32,
) {
    guard::end("release", || {
        let used = reader_used::<A>(handle);
        for index in 0..count {
            let slot = unsafe { (*sample_at(samples, stride, index)).adapter_data }.addr();
            if let Some(sample) = used.taken.get_mut(slot).and_then(Option::take) {
                used.reader.release(sample);
                used.free.push(slot);
            }
        }
    });
}

fn writer_status<'a, A: Adapter>(handle: *const abi::WriterHandle) -> &'a Arc<dyn Status> {
    unsafe { &*addr_of!((*handle.cast::<WriterObject<A>>()).status) }
}

fn reader_status<'a, A: Adapter>(handle: *const abi::ReaderHandle) -> &'a Arc<dyn Status> {
    unsafe { &*addr_of!((*handle.cast::<ReaderObject<A>>()).status) }
}

extern "C" fn writer_matched<A: Adapter>(handle: *mut abi::WriterHandle, out: *mut abi::Matched) -> Code {
    guard::call("writer_matched", || Ok(tell_matched(writer_status::<A>(handle).matched(), out)))
}

extern "C" fn reader_matched<A: Adapter>(handle: *mut abi::ReaderHandle, out: *mut abi::Matched) -> Code {
    guard::call("reader_matched", || Ok(tell_matched(reader_status::<A>(handle).matched(), out)))
}

fn tell_matched(matched: Matched, out: *mut abi::Matched) -> Code {
    let (count, exact) = match matched {
        Matched::Seen(count) => (count, 0),
        Matched::Unknown => (0, 2),
    };
    unsafe { ((*out).count, (*out).exact) = (count, exact) };
    abi::OK
}

extern "C" fn writer_counters<A: Adapter>(handle: *mut abi::WriterHandle, out: *mut abi::Counters) -> Code {
    guard::call("writer_counters", || Ok(tell_counters(writer_status::<A>(handle).counters(), out)))
}

extern "C" fn reader_counters<A: Adapter>(handle: *mut abi::ReaderHandle, out: *mut abi::Counters) -> Code {
    guard::call("reader_counters", || Ok(tell_counters(reader_status::<A>(handle).counters(), out)))
}

fn tell_counters(counters: Counters, out: *mut abi::Counters) -> Code {
    let bit = |value: Option<u64>, bit: u64| if value.is_some() { bit } else { 0 };
    unsafe {
        (*out).present = bit(counters.lost, abi::COUNTER_LOST)
            | bit(counters.rejected, abi::COUNTER_REJECTED)
            | bit(counters.overwritten, abi::COUNTER_OVERWRITTEN);
        (*out).lost = counters.lost.unwrap_or(0);
        (*out).rejected = counters.rejected.unwrap_or(0);
        (*out).overwritten = counters.overwritten.unwrap_or(0);
    }
    abi::OK
}

extern "C" fn describe<A: Adapter>(
    kind: u32,
    object: *const c_void,
    sink: abi::Sink,
    user: *mut c_void,
) -> Code {
    guard::call("describe", || {
        let description = match kind {
            abi::OBJECT_CONTEXT => context_of::<A>(object.cast_mut().cast()).describe(),
            abi::OBJECT_WRITER => writer_status::<A>(object.cast()).describe(),
            abi::OBJECT_READER => reader_status::<A>(object.cast()).describe(),
            _ => crate::Description::default(),
        };
        sink(user, host::text(&description.to_json()));
        Ok(abi::OK)
    })
}
