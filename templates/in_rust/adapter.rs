// SPDX-License-Identifier: Apache-2.0
//! A template for an adapter in Rust that needs only the installed files. It copies messages within a process,
//! keeps the newest, and is polled or calls a listener on each reader's own thread. Build it with
//!   LAGOMETER="$(lagometer adapters --include)" rustc --edition 2021 -O --crate-type cdylib --crate-name in_rust adapter.rs
//! Nothing unwinds into C: a panic in an `extern "C"` function ends the process.
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

use abi::*;
use plain::{answer, element, made, object, shared, text, whole, words, Abilities, Checked, Listener, Out};

#[allow(dead_code)]
mod abi {
    include!(concat!(env!("LAGOMETER"), "/lagometer/adapter.rs"));
}
#[allow(dead_code)]
mod plain {
    include!(concat!(env!("LAGOMETER"), "/lagometer/plain.rs"));
}

const SHOWN_MAX: usize = 64; // messages between take and release, in addition to those that are waiting
const PAYLOAD_BYTES_MAX: u64 = 1 << 20;
const ONLY: Abilities = Abilities::only(DISPATCH_POLL, BEST_EFFORT, KEEP_LAST, VOLATILE);
const ABILITIES: Abilities = Abilities { dispatch: ONLY.dispatch | 1 << DISPATCH_LISTENER, ..ONLY };

type Domain = u32; // of a context and of a node
type Place = (Domain, u64, String); // domain, size, topic: endpoints match if it is the same

struct Writer {
    place: Place,
    data: Vec<u8>,
}
struct Reader {
    place: Place,
    depth: usize,
    waiting: VecDeque<Vec<u8>>, // at most `depth`
    spare: Vec<Vec<u8>>,
    listener: Option<Listener>,
}
type Locked = Arc<Mutex<Reader>>; // for `take`, and for each `commit` on any thread
static READERS: Mutex<Vec<(Place, Locked)>> = Mutex::new(Vec::new()); // the enabled ones

extern "C" fn context_create(config: *const ContextConfig, out: Out<ContextHandle>) -> Status {
    made(plain::check_context(&whole(config)).map(|()| whole(config).domain), out)
}
extern "C" fn node_create(context: *mut ContextHandle, _name: Text, out: Out<NodeHandle>) -> Status {
    made(Ok(*shared::<Domain, _>(context)), out)
}
extern "C" fn type_create(_: *mut ContextHandle, config: *const TypeConfig, out: Out<TypeHandle>) -> Status {
    made(plain::check_bytes(&whole(config), PAYLOAD_BYTES_MAX).map(|()| whole(config).max_bytes), out)
}
fn settled(n: *mut NodeHandle, c: *const EndpointConfig, checked: Checked<()>) -> Checked<(Place, usize)> {
    checked?;
    let config = whole(c);
    let place = (*shared(n), *shared(config.type_), words(config.topic).to_owned());
    Ok((place, plain::depth(&config)))
}
extern "C" fn writer_create(n: *mut NodeHandle, c: *const EndpointConfig, out: Out<WriterHandle>) -> Status {
    let place = settled(n, c, plain::check_writer(&whole(c), &ABILITIES));
    made(place.map(|(place, _)| Writer { data: vec![0; place.1 as usize], place }), out)
}
extern "C" fn reader_create(n: *mut NodeHandle, c: *const EndpointConfig, out: Out<ReaderHandle>) -> Status {
    let reader = settled(n, c, plain::check_endpoint(&whole(c), &ABILITIES)).map(|(place, depth)| {
        let spare = (0..depth + SHOWN_MAX).map(|_| Vec::with_capacity(place.1 as usize)).collect();
        let (waiting, listener) = (VecDeque::with_capacity(depth), Listener::of(&whole(c)));
        Locked::new(Mutex::new(Reader { place, depth, waiting, spare, listener }))
    });
    made(reader, out)
}
extern "C" fn reader_enable(handle: *mut ReaderHandle) -> Status {
    let reader = shared::<Locked, _>(handle);
    READERS.lock().unwrap().push((reader.lock().unwrap().place.clone(), reader.clone()));
    OK
}
extern "C" fn reader_destroy(handle: *mut ReaderHandle) {
    if !handle.is_null() {
        let reader = shared::<Locked, _>(handle);
        READERS.lock().unwrap().retain(|(_, other)| !Locked::ptr_eq(other, reader));
        let listener = reader.lock().unwrap().listener.take();
        drop(listener); // waits for a running call, which may take: so without the lock
    }
    plain::free::<Locked, _>(handle);
}
extern "C" fn borrow(handle: *mut WriterHandle, bytes: u64, message: *mut Message) -> Status {
    let writer = object::<Writer, _>(handle);
    if bytes > writer.place.1 {
        return answer(plain::no(INVALID, "a message larger than its type"));
    }
    let message = unsafe { &mut *message };
    (message.origin, message.region_count) = (ORIGIN_COPIED, 1);
    message.regions[0] = Region { data: writer.data.as_mut_ptr(), size: bytes };
    OK
}
extern "C" fn commit(handle: *mut WriterHandle, message: *mut Message) -> Status {
    let writer = object::<Writer, _>(handle);
    let bytes = unsafe { (*message).regions[0].size } as usize;
    for (_, reader) in READERS.lock().unwrap().iter().filter(|(place, _)| *place == writer.place) {
        let mut reader = reader.lock().unwrap();
        let full = reader.waiting.len() == reader.depth;
        let free = if full { reader.waiting.pop_front() } else { reader.spare.pop() };
        let Some(mut message) = free else { continue }; // all are between take and release: the message is lost
        message.clear();
        message.extend_from_slice(&writer.data[..bytes]);
        reader.waiting.push_back(message);
        reader.listener.iter().for_each(Listener::ring);
    }
    OK
}
extern "C" fn take(r: *mut ReaderHandle, s: *mut Sample, stride: u32, max: u32, taken: *mut u32) -> Status {
    let mut reader = shared::<Locked, _>(r).lock().unwrap();
    let count = max.min(reader.waiting.len() as u32);
    for (index, message) in (0..count).zip(reader.waiting.drain(..count as usize)) {
        let (sample, mut message) = (element(s, stride, index), ManuallyDrop::new(message));
        (sample.flags, sample.region_count, sample.signalled_ns) = (0, 1, 0);
        sample.regions[0] = Region { data: message.as_mut_ptr(), size: message.len() as u64 };
        sample.adapter_data = message.capacity() as *mut c_void;
    }
    unsafe { *taken = count };
    OK
}
extern "C" fn release(handle: *mut ReaderHandle, samples: *mut Sample, stride: u32, count: u32) {
    let mut reader = shared::<Locked, _>(handle).lock().unwrap();
    for sample in (0..count).map(|index| element(samples, stride, index)) {
        let Region { data, size } = sample.regions[0];
        reader.spare.push(unsafe { Vec::from_raw_parts(data, size as usize, sample.adapter_data as usize) });
    }
}
extern "C" fn describe(_: u32, _: *const c_void, sink: Sink, user: *mut c_void) -> Status {
    sink(user, text(r#"{"settings":{},"paste":[],"transport":{"within_process":["process"]}}"#));
    OK
}
// Required: all but the waitset's functions, which are None without the dispatch "waitset".
#[rustfmt::skip]
static TABLE: Table = Table {
    size: size_of::<Table>() as u32, abi_version: ABI_VERSION, name: text("in_rust"), probe: plain::probe,
    context_create, context_enable: plain::enable, node_create, type_create, writer_create,
    writer_enable: plain::enable, reader_create, reader_enable, reader_destroy,
    writer_destroy: plain::free::<Writer, _>, type_destroy: plain::free::<u64, _>,
    node_destroy: plain::free::<Domain, _>, context_destroy: plain::free::<Domain, _>, borrow, commit,
    discard: plain::discard, take, release, writer_matched: plain::matched, reader_matched: plain::matched,
    writer_counters: plain::counters, reader_counters: plain::counters, describe, waitset_create: None,
    waitset_attach: None, waitset_wait: None, waitset_trigger: None, waitset_destroy: None,
    extension: plain::extension, waitset_wait_ready: None,
};
#[no_mangle]
extern "C" fn lagometer_adapter(host: *const Host) -> *const Table {
    plain::table_for(host, &TABLE)
}
