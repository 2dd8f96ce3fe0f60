// SPDX-License-Identifier: Apache-2.0
//! A whole adapter, driven through its table as the engine drives it: messages are delivered, misuse is
//! rejected with an error text, and a panic becomes a status after which nothing is called any more.
#![allow(clippy::undocumented_unsafe_blocks)] // it acts as C, and keeps the header's contract
#![allow(clippy::unwrap_used)] // clippy allows it in tests, but not in what they call
use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lagometer_adapter::abi::{self, Table, Text};
use lagometer_adapter::{
    export_adapter, Adapter, Context, ContextConfig, Description, Endpoint, Fillable, HasInbox, History,
    Inbox, InboxWaitset, Loan, Memory, Origin, Reader, Result, Sample, Sent, Status, View, Writer,
};

type Message = Vec<u8>;
type Readers = Arc<Mutex<Vec<Arc<Inbox<Message>>>>>;

/// Delivers messages within one context, whatever the topic; a message that begins with 255 makes it panic.
struct Loopback;
struct LoopbackContext(Readers);
struct LoopbackWriter(Readers);
struct LoopbackReader(Arc<Inbox<Message>>);
struct Buffer(Message);
struct NoStatus;

impl Adapter for Loopback {
    const NAME: &'static str = "loopback";
    const SIDECAR: &'static str = r#"{"name": "loopback", "abilities": {"types": ["bytes"]}, "limits": {},
        "options": {"size": {"type": "integer", "default": 1}}}"#;
    const VERSION: &'static str = "1";
    type Context = LoopbackContext;
    type Writer = LoopbackWriter;
    type Reader = LoopbackReader;
    type Waitset = InboxWaitset;

    fn context(_config: ContextConfig) -> Result<LoopbackContext> {
        Ok(LoopbackContext(Readers::default()))
    }
    fn writer(context: &LoopbackContext, _endpoint: &Endpoint) -> Result<LoopbackWriter> {
        Ok(LoopbackWriter(context.0.clone()))
    }
    fn reader(context: &LoopbackContext, endpoint: &Endpoint) -> Result<LoopbackReader> {
        let inbox = Inbox::new(endpoint, History::KeepLast(4), 4);
        context.0.lock().unwrap().push(inbox.clone());
        Ok(LoopbackReader(inbox))
    }
    fn waitset(_context: &LoopbackContext) -> Result<InboxWaitset> {
        Ok(InboxWaitset::new())
    }
}

impl Context for LoopbackContext {
    fn describe(&self) -> Description {
        Description::default().setting("some", 2, 1).transport(&["process"], &[])
    }
}

impl Status for NoStatus {}

impl Loan for Buffer {
    fn origin(&self) -> Origin {
        Origin::Copied
    }
    fn memory(&mut self) -> Memory<'_> {
        (&mut self.0[..]).into()
    }
}

impl Writer for LoopbackWriter {
    type Loan = Buffer;
    fn borrow(&mut self, bytes: usize) -> Result<Option<Buffer>> {
        Ok(Some(Buffer(vec![0; bytes])))
    }
    fn commit(&mut self, loan: Buffer) -> Result<Sent> {
        assert_ne!(loan.0[0], 255, "a message that the adapter can't stand");
        for inbox in self.0.lock().unwrap().iter() {
            inbox.push(loan.0.clone());
        }
        Ok(Sent::Accepted)
    }
    fn status(&self) -> Arc<dyn Status> {
        Arc::new(NoStatus)
    }
}

impl Sample for Buffer {
    fn view(&self) -> View<'_> {
        View { regions: [&self.0, &[], &[], &[]], ..View::default() }
    }
}

impl Reader for LoopbackReader {
    type Sample = Buffer;
    fn take(&mut self) -> Result<Option<Buffer>> {
        Ok(self.0.pop().map(Buffer))
    }
    fn status(&self) -> Arc<dyn Status> {
        self.0.clone()
    }
}

impl HasInbox for LoopbackReader {
    fn inbox(&self) -> Arc<dyn Fillable> {
        self.0.clone()
    }
}

export_adapter!(Loopback);

static SAID: Mutex<String> = Mutex::new(String::new());
static CALLS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn log(_: *mut c_void, _: u32, _: Text) {}
extern "C" fn now_ns(_: *mut c_void) -> i64 {
    1
}
extern "C" fn stamp_keyed(
    _this: *mut c_void,
    _user: *mut c_void,
    _key: *const abi::StampKey,
    _layer: u32,
    _time_ns: i64,
    _cpu: u32,
) {
}
extern "C" fn stamp(_: *mut c_void, _: *mut c_void, _: u32, _: u64, _: i64) {}
extern "C" fn thread_begin(_: *mut c_void, _: u32, _: Text) {}
extern "C" fn thread_end(_: *mut c_void) {}
extern "C" fn fail(_: *mut c_void, message: Text) {
    let bytes = unsafe { std::slice::from_raw_parts(message.data, message.size as usize) };
    *SAID.lock().unwrap() = String::from_utf8_lossy(bytes).into_owned();
}
extern "C" fn keep(user: *mut c_void, text: Text) {
    let bytes = unsafe { std::slice::from_raw_parts(text.data, text.size as usize) };
    unsafe { *user.cast::<String>() = String::from_utf8_lossy(bytes).into_owned() };
}
extern "C" fn on_data(_: *mut c_void) {
    CALLS.fetch_add(1, Ordering::SeqCst);
}

fn said() -> String {
    SAID.lock().unwrap().clone()
}

fn text(text: &'static str) -> Text {
    Text { data: text.as_ptr(), size: text.len() as u64 }
}

fn entry() -> &'static Table {
    let host = Box::leak(Box::new(abi::Host {
        size: abi::HOST_SIZE_1_0 as u32 - 8,
        abi_version: abi::ABI_VERSION,
        this: ptr::null_mut(),
        log,
        now_ns,
        stamp,
        thread_begin,
        thread_end,
        fail,
        stamp_keyed: Some(stamp_keyed),
    }));
    assert!(unsafe { lagometer_adapter(ptr::null()) }.is_null());
    assert!(unsafe { lagometer_adapter(host) }.is_null(), "a host without the fields of the first version");
    host.size = abi::HOST_SIZE_1_0 as u32;
    unsafe { &*lagometer_adapter(host) }
}

/// One context with a writer and a reader with a listener.
struct Opened {
    context: *mut abi::ContextHandle,
    node: *mut abi::NodeHandle,
    payload: *mut abi::TypeHandle,
    writer: *mut abi::WriterHandle,
    reader: *mut abi::ReaderHandle,
}

fn open(table: &Table) -> Opened {
    let mut opened: Opened = unsafe { zeroed() };
    let mut config: abi::ContextConfig = unsafe { zeroed() };
    config.size = abi::CONTEXT_CONFIG_SIZE_1_0 as u32 - 8;
    assert_eq!((table.context_create)(&config, &mut opened.context), abi::INVALID);
    assert!(said().contains("104 bytes, its first version had 112"), "{}", said());
    config.size = abi::CONTEXT_CONFIG_SIZE_1_0 as u32;
    config.runtime_directory = text("/tmp");
    config.options = text(r#"{"sise": 1}"#);
    assert_eq!((table.context_create)(&config, &mut opened.context), abi::INVALID);
    assert_eq!(said(), "loopback: loopback has no option 'sise'; valid: size");
    config.options = text("{}");
    assert_eq!((table.context_create)(&config, &mut opened.context), abi::OK);
    assert_eq!((table.context_enable)(opened.context), abi::OK);
    assert_eq!((table.node_create)(opened.context, text("node"), &mut opened.node), abi::OK);
    let mut kind: abi::TypeConfig = unsafe { zeroed() };
    kind.size = abi::TYPE_CONFIG_SIZE_1_0 as u32;
    (kind.name, kind.max_bytes) = (text("bytes"), 64);
    for (flags, refused) in [(1 << 31, abi::INVALID), (abi::TYPE_KEYED, abi::UNSUPPORTED), (0, abi::OK)] {
        kind.flags = flags;
        assert_eq!((table.type_create)(opened.context, &kind, &mut opened.payload), refused);
    }
    let mut endpoint: abi::EndpointConfig = unsafe { zeroed() };
    endpoint.size = abi::ENDPOINT_CONFIG_SIZE_1_0 as u32;
    (endpoint.type_, endpoint.topic, endpoint.dispatch) = (opened.payload, text("topic"), 2);
    assert_eq!((table.writer_create)(opened.node, &endpoint, &mut opened.writer), abi::INVALID);
    assert!(said().contains("without on_data"), "{}", said());
    endpoint.on_data = Some(on_data);
    let mut qos: abi::Qos = unsafe { zeroed() };
    qos.size = abi::QOS_SIZE_1_0 as u32;
    for (present, refused) in [(1 << 63, abi::INVALID), (abi::QOS_DEADLINE, abi::UNSUPPORTED)] {
        qos.present = present;
        endpoint.qos = &qos;
        assert_eq!((table.writer_create)(opened.node, &endpoint, &mut opened.writer), refused);
    }
    endpoint.qos = ptr::null();
    assert_eq!((table.writer_create)(opened.node, &endpoint, &mut opened.writer), abi::OK);
    assert_eq!((table.reader_create)(opened.node, &endpoint, &mut opened.reader), abi::OK);
    opened
}

fn send(table: &Table, writer: *mut abi::WriterHandle, first: u8) -> i32 {
    let mut message: abi::Message = unsafe { zeroed() };
    assert_eq!((table.borrow)(writer, 65, &mut message), abi::INVALID);
    assert_eq!((table.borrow)(writer, 64, &mut message), abi::OK);
    assert_eq!((message.origin, message.region_count, message.regions[0].size), (3, 1, 64));
    unsafe { message.regions[0].data.write(first) };
    (table.commit)(writer, &mut message)
}

// Two readers of one topic: the drained one is no longer listed.
fn only_the_ready_reader_is_named(table: &Table, opened: &Opened) {
    let mut endpoint: abi::EndpointConfig = unsafe { zeroed() };
    endpoint.size = abi::ENDPOINT_CONFIG_SIZE_1_0 as u32;
    (endpoint.type_, endpoint.topic, endpoint.dispatch) = (opened.payload, text("topic"), 1);
    let (mut waitset, mut idle, mut busy) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    assert_eq!((table.waitset_create.unwrap())(opened.context, &mut waitset), abi::OK);
    for reader in [&mut idle, &mut busy] {
        assert_eq!((table.reader_create)(opened.node, &endpoint, reader), abi::OK);
        assert_eq!((table.waitset_attach.unwrap())(waitset, *reader), abi::OK);
    }
    let wait = table.waitset_wait_ready.unwrap();
    let (mut ready, mut count) = ([9; 2], 9);
    assert_eq!(wait(waitset, 0, ready.as_mut_ptr(), 2, &mut count), abi::TIMEOUT);
    assert_eq!((count, ready), (0, [9, 9]));
    assert_eq!(send(table, opened.writer, 1), abi::OK);
    assert_eq!(wait(waitset, i64::MAX, ready.as_mut_ptr(), 2, &mut count), abi::OK);
    assert_eq!((count, ready), (2, [0, 1]));
    take_all(table, idle);
    assert_eq!(wait(waitset, i64::MAX, ready.as_mut_ptr(), 2, &mut count), abi::OK);
    assert_eq!((count, ready[0]), (1, 1));
    take_all(table, busy);
    (table.waitset_trigger.unwrap())(waitset);
    assert_eq!(wait(waitset, i64::MAX, ready.as_mut_ptr(), 2, &mut count), abi::OK);
    assert_eq!(count, 0);
    (table.waitset_destroy.unwrap())(waitset);
    (table.reader_destroy)(idle);
    (table.reader_destroy)(busy);
}

fn take_all(table: &Table, reader: *mut abi::ReaderHandle) {
    let mut samples: [abi::Sample; 8] = unsafe { zeroed() };
    let (stride, mut taken) = (size_of::<abi::Sample>() as u32, 0);
    assert_eq!((table.take)(reader, samples.as_mut_ptr(), stride, 8, &mut taken), abi::OK);
    (table.release)(reader, samples.as_mut_ptr(), stride, taken);
}

// One test, because a panic ends the adapter for good.
#[test]
fn messages_pass_and_a_panic_does_not() {
    let table = entry();
    let mut answer = String::new();
    assert_eq!((table.probe)(text("{}"), keep, (&raw mut answer).cast()), abi::OK);
    assert_eq!(answer, r#"{"abilities":{"types":["bytes"]},"limits":{},"version":"1"}"#);
    let opened = open(table);
    for first in 1..=6 {
        assert_eq!(send(table, opened.writer, first), abi::OK);
    }
    assert_eq!(CALLS.load(Ordering::SeqCst), 6);

    // Keep last 4: two were pushed out; the views point at the messages until they are released.
    let mut samples: [abi::Sample; 8] = unsafe { zeroed() };
    let (stride, mut taken) = (size_of::<abi::Sample>() as u32, 0);
    assert_eq!((table.take)(opened.reader, samples.as_mut_ptr(), stride, 8, &mut taken), abi::OK);
    let firsts: Vec<u8> = samples[..4].iter().map(|sample| unsafe { *sample.regions[0].data }).collect();
    assert_eq!((taken, firsts), (4, vec![3, 4, 5, 6]));
    (table.release)(opened.reader, samples.as_mut_ptr(), stride, taken);
    let mut counters: abi::Counters = unsafe { zeroed() };
    assert_eq!((table.reader_counters)(opened.reader, &mut counters), abi::OK);
    assert_eq!((counters.present & abi::COUNTER_OVERWRITTEN != 0, counters.overwritten), (true, 2));
    let kind = abi::OBJECT_CONTEXT;
    assert_eq!((table.describe)(kind, opened.context.cast(), keep, (&raw mut answer).cast()), abi::OK);
    assert!(answer.contains(r#""settings":{"some":{"default":1,"value":2}}"#), "{answer}");

    only_the_ready_reader_is_named(table, &opened);
    assert_eq!(send(table, opened.writer, 255), abi::FAILED);
    assert!(said().starts_with("panic in commit: "), "{}", said());
    assert_eq!((table.take)(opened.reader, samples.as_mut_ptr(), stride, 8, &mut taken), abi::FAILED);
    assert_eq!(said(), "take refused: the adapter panicked before");
    (table.reader_destroy)(opened.reader);
    (table.writer_destroy)(opened.writer);
    (table.type_destroy)(opened.payload);
    (table.node_destroy)(opened.node);
    (table.context_destroy)(opened.context);
}
