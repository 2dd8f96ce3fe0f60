// SPDX-License-Identifier: Apache-2.0
// lagometer/plain.rs: what every adapter in Rust must check and report, for adapters that use nothing else of
// ours: `mod plain { include!(...); }` next to `mod abi`, which is lagometer/adapter.rs. Nothing here is part
// of the ABI: it is compiled into the adapter. (The crate adapters/rust does more, and needs cargo.)

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use super::abi::*;

/// An object, or the status and error text of its rejection.
pub type Checked<Object> = Result<Object, (Status, String)>;

/// Where a create function puts its object.
pub type Out<Handle> = *mut *mut Handle;

/// The host that loaded this library; set by `serves`.
static HOST: AtomicPtr<Host> = AtomicPtr::new(null_mut());

pub const fn text(words: &str) -> Text {
    Text { data: words.as_ptr(), size: words.len() as u64 }
}

/// A text from C, valid until the call ends.
pub fn words<'call>(text: Text) -> &'call str {
    if text.size == 0 {
        return "";
    }
    let bytes = unsafe { std::slice::from_raw_parts(text.data, text.size as usize) };
    std::str::from_utf8(bytes).unwrap_or("(not UTF-8)")
}

/// For `lagometer_adapter`: the table, or null if the adapter can't work with this host.
pub fn table_for(host: *const Host, table: &'static Table) -> *const Table {
    if serves(host) {
        table
    } else {
        null()
    }
}

/// Whether the adapter can work with this host; keeps it. Call this first in `lagometer_adapter`.
pub fn serves(host: *const Host) -> bool {
    let fits = !host.is_null()
        && unsafe { (*host).abi_version >= ABI_VERSION && (*host).size as usize >= HOST_SIZE_1_0 };
    if fits {
        let short = unsafe { (*host).size as usize } < size_of::<Host>();
        let whole = if short { Box::leak(Box::new(whole(host))) } else { host.cast_mut() };
        HOST.store(whole, Ordering::Release);
    }
    fits
}

/// A host's struct as this file knows it. Where the host's is shorter, fields are zero, which means absent;
/// where it is longer, the rest is cut. No host passes less than the first version had (`..._SIZE_1_0`).
pub fn whole<Struct>(given: *const Struct) -> Struct {
    let mut whole = MaybeUninit::<Struct>::zeroed();
    unsafe {
        let size = given.cast::<u32>().read() as usize;
        let (from, to) = (given.cast::<u8>(), whole.as_mut_ptr().cast::<u8>());
        std::ptr::copy_nonoverlapping(from, to, size.min(size_of::<Struct>()));
        whole.assume_init()
    }
}

/// The host that `serves` kept: the clock, the log, `thread_begin` and `thread_end` for threads that an
/// adapter creates. `(host().now_ns)(host().this)`
pub fn host() -> &'static Host {
    unsafe { HOST.load(Ordering::Acquire).as_ref() }.expect("call serves() first, in lagometer_adapter")
}

/// Rejects a request: `no(UNSUPPORTED, "no listener")?`
pub fn no<Object>(status: Status, why: &str) -> Checked<Object> {
    Err((status, why.to_owned()))
}

/// What a call returns: OK, or the status of the rejection, whose text goes to the host.
pub fn answer(checked: Checked<()>) -> Status {
    let Err((status, why)) = checked else { return OK };
    (host().fail)(host().this, text(&why));
    status
}

/// Passes an object to the host. `free` takes it back, `shared` and `object` access it.
pub fn made<Object, Handle>(checked: Checked<Object>, out: Out<Handle>) -> Status {
    answer(checked.map(|object| unsafe { *out = Box::into_raw(Box::new(object)).cast() }))
}
/// The object behind a handle, right in every call: other threads may be in calls with the same object. What
/// changes in it needs a lock or an atomic, which the compiler checks (`Sync`).
pub fn shared<'call, Object: Sync, Handle>(handle: *mut Handle) -> &'call Object {
    unsafe { &*handle.cast::<Object>() }
}
/// The same, to change it without a lock; get it once in a call. Right only while no other thread looks into
/// this object: the header calls the call "one at a time per object", and the adapter's calls for any thread
/// (`..._matched`, `..._counters`, `describe`) leave this object alone. So it fits a writer in `borrow` and
/// `commit`. Use `shared` for contexts, nodes and types, which all their endpoints use at once, and for
/// readers that another thread gives messages to.
pub fn object<'call, Object, Handle>(handle: *mut Handle) -> &'call mut Object {
    unsafe { &mut *handle.cast::<Object>() }
}
pub extern "C" fn free<Object, Handle>(handle: *mut Handle) {
    if !handle.is_null() {
        drop(unsafe { Box::from_raw(handle.cast::<Object>()) });
    }
}

/// What a reader's configuration says to call when there is something to take.
struct OnData {
    function: Option<DataFunction>,
    user: *mut c_void,
}
// The host's function may be called on any thread.
unsafe impl Send for OnData {}

impl OnData {
    fn call(&self) {
        if let Some(function) = self.function {
            function(self.user);
        }
    }
}

/// A reader's listener: a thread that calls `on_data` after each `ring`. Rings during a call lead to one more
/// call. Drop it in `reader_destroy`, with no lock held that `take` needs: that waits until a running call has
/// ended. (If the middleware calls back on a thread of its own, it may call `on_data` there instead.)
pub struct Listener {
    bell: Arc<(Mutex<Rung>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Rung {
    waiting: bool,
    ended: bool,
}

impl Listener {
    /// For `reader_create`: starts the thread if the dispatch is `listener`. It calls nothing before a ring.
    pub fn of(config: &EndpointConfig) -> Option<Listener> {
        if config.dispatch != DISPATCH_LISTENER {
            return None;
        }
        let on_data = OnData { function: config.on_data, user: config.user };
        let bell = Arc::<(Mutex<Rung>, Condvar)>::default();
        let heard = bell.clone();
        let thread = std::thread::spawn(move || {
            (host().thread_begin)(host().this, ROLE_RECEIVE, text("listener"));
            while heard_ring(&heard) {
                on_data.call();
            }
            (host().thread_end)(host().this);
        });
        Some(Listener { bell, thread: Some(thread) })
    }

    /// There is something to take. Any thread may call this, with any lock held.
    pub fn ring(&self) {
        self.bell.0.lock().unwrap().waiting = true;
        self.bell.1.notify_one();
    }
}

/// Waits for a ring; false: it has ended.
fn heard_ring((rung, changed): &(Mutex<Rung>, Condvar)) -> bool {
    let mut rung = rung.lock().unwrap();
    while !rung.waiting && !rung.ended {
        rung = changed.wait(rung).unwrap();
    }
    rung.waiting = false;
    !rung.ended
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.bell.0.lock().unwrap().ended = true;
        self.bell.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// For an adapter without options: rejects every option by name, profiles other than the two, and security.
pub fn check_context(config: &ContextConfig) -> Checked<()> {
    if !words(config.security).is_empty() {
        return no(UNSUPPORTED, "there is no security: leave it out");
    }
    match (words(config.profile), words(config.options)) {
        ("" | "default" | "matched", "" | "{}") => Ok(()),
        ("" | "default" | "matched", given) => {
            no(INVALID, &format!("there are no options: leave out {given}"))
        }
        _ => no(INVALID, "the profiles are default and matched"),
    }
}

/// For an adapter that only has the type `bytes`, without keys, up to a size.
pub fn check_bytes(config: &TypeConfig, bytes_max: u64) -> Checked<()> {
    match (config.flags & !TYPE_KEYED, config.flags, words(config.name)) {
        (0, 0, "bytes") if config.max_bytes <= bytes_max => Ok(()),
        (0, 0, "bytes") => no(UNSUPPORTED, "a payload above the limit"),
        (0, ..) => no(UNSUPPORTED, "bytes without a key is the only type"),
        _ => no(INVALID, "a type with a flag that is not known"),
    }
}

/// What an adapter supports, for `check_endpoint`: one bit per value, e.g. `1 << KEEP_LAST`.
pub struct Abilities {
    pub dispatch: u32,
    pub reliability: u32,
    pub history: u32,
    pub durability: u32,
}

impl Abilities {
    /// For an adapter that supports one value of each.
    pub const fn only(dispatch: u32, reliability: u32, history: u32, durability: u32) -> Self {
        Self {
            dispatch: 1 << dispatch,
            reliability: 1 << reliability,
            history: 1 << history,
            durability: 1 << durability,
        }
    }
}

/// Rejects flags and policies that this ABI does not know, and what the adapter does not support. For a
/// writer, use `check_writer`.
pub fn check_endpoint(config: &EndpointConfig, has: &Abilities) -> Checked<()> {
    let qos = whole(config.qos);
    if config.flags != 0 || config.dispatch > DISPATCH_LISTENER || qos.present >= 2 * QOS_PARTITION {
        return no(INVALID, "a flag, dispatch or quality of service that is not known");
    }
    if qos.present > (QOS_RELIABILITY | QOS_HISTORY | QOS_DURABILITY) {
        return no(UNSUPPORTED, "of qualities of service, reliability, history and durability");
    }
    let lacks = |policy: u64, has: u32, asked: u32| {
        qos.present & policy != 0 && (asked > 31 || has >> asked & 1 == 0)
    };
    if has.dispatch >> config.dispatch & 1 == 0 {
        return no(UNSUPPORTED, "this dispatch is not there");
    }
    if lacks(QOS_RELIABILITY, has.reliability, qos.reliability) {
        return no(UNSUPPORTED, "this reliability is not there");
    }
    if lacks(QOS_HISTORY, has.history, qos.history) || lacks(QOS_DURABILITY, has.durability, qos.durability) {
        return no(UNSUPPORTED, "this history or durability is not there");
    }
    Ok(())
}

/// The same for a writer. Its dispatch is always 0 (poll), which the adapter need not support.
pub fn check_writer(config: &EndpointConfig, has: &Abilities) -> Checked<()> {
    check_endpoint(config, &Abilities { dispatch: 1 << DISPATCH_POLL, ..*has })
}

/// How many messages a reader keeps with keep_last: the requested depth, or one. Keep_all has no depth.
pub fn depth(config: &EndpointConfig) -> usize {
    let qos = whole(config.qos);
    if qos.present & QOS_HISTORY != 0 {
        qos.depth.max(1) as usize
    } else {
        1
    }
}

/// Element `index` of an array whose elements are `stride` bytes apart.
pub fn element<'call>(samples: *mut Sample, stride: u32, index: u32) -> &'call mut Sample {
    unsafe { &mut *samples.byte_add(stride as usize * index as usize) }
}

/// For the table: the probe of an adapter whose sidecar says everything.
pub extern "C" fn probe(_: Text, sink: Sink, user: *mut c_void) -> Status {
    sink(user, text(r#"{"version":"1","abilities":{},"limits":{}}"#));
    OK
}

/// For the table: objects with nothing to start, count or report.
pub extern "C" fn enable<Handle>(_: *mut Handle) -> Status {
    OK
}
pub extern "C" fn discard(_: *mut WriterHandle, _: *mut Message) {}
pub extern "C" fn matched<Handle>(_: *mut Handle, out: *mut Matched) -> Status {
    unsafe { ((*out).count, (*out).exact) = (0, 2) };
    OK
}
pub extern "C" fn counters<Handle>(_: *mut Handle, out: *mut Counters) -> Status {
    unsafe { (*out).present = 0 };
    OK
}
pub extern "C" fn extension(_: u32, _: *mut c_void, _: Text) -> *const c_void {
    null()
}
