// SPDX-License-Identifier: Apache-2.0
// `lagometer/adapter.h` in Rust, field for field. It is installed next to the header, as
// `lagometer/adapter.rs`, for adapters in Rust that use nothing else of ours: `mod abi { include!(...); }`.
// That is why this file has no inner attributes or doc comments and uses only names of `std`.
// `tests/integration/adapters/test_adapters_rust.py` checks it against the header.
//
// Only the header documents the meaning of each item and the contract of each function.

use std::ffi::c_void;

pub const ABI_VERSION: u32 = 1;
pub const ENVELOPE_BYTES: u32 = 16;
pub const PAYLOAD_BYTES_MIN: u32 = 4;
pub const TEXT_ENVELOPE_BYTES: u32 = 32;
pub const POINT_BYTES: u32 = 16;
pub const IMU_BYTES: u32 = 328;
pub const REGIONS_MAX: usize = 4;
pub const HELD_MAX: u32 = 64;

pub const HOST_SIZE_1_0: usize = 64;
pub const CONTEXT_CONFIG_SIZE_1_0: usize = 112;
pub const QOS_SIZE_1_0: usize = 88;
pub const TYPE_CONFIG_SIZE_1_0: usize = 56;
pub const ENDPOINT_CONFIG_SIZE_1_0: usize = 72;
pub const MESSAGE_SIZE_1_0: usize = 88;
pub const SAMPLE_SIZE_1_0: usize = 144;
pub const MATCHED_SIZE_1_0: usize = 16;
pub const COUNTERS_SIZE_1_0: usize = 56;
pub const ADAPTER_TABLE_SIZE_1_0: usize = 264;

pub const OK: i32 = 0;
pub const TIMEOUT: i32 = 1;
pub const REJECTED: i32 = 2;
pub const UNSUPPORTED: i32 = -1;
pub const INVALID: i32 = -2;
pub const NO_RESOURCE: i32 = -3;
pub const FAILED: i32 = -4;

pub const OBJECT_ADAPTER: u32 = 0;
pub const OBJECT_CONTEXT: u32 = 1;
pub const OBJECT_NODE: u32 = 2;
pub const OBJECT_TYPE: u32 = 3;
pub const OBJECT_WRITER: u32 = 4;
pub const OBJECT_READER: u32 = 5;
pub const OBJECT_WAITSET: u32 = 6;

pub const LOG_DEBUG: u32 = 0;
pub const LOG_INFO: u32 = 1;
pub const LOG_WARNING: u32 = 2;
pub const LOG_ERROR: u32 = 3;

pub const ROLE_RECEIVE: u32 = 1;
pub const ROLE_SEND: u32 = 2;
pub const ROLE_OTHER: u32 = 3;

pub const LAYER_SERIALISE: u32 = 1;
pub const LAYER_WRITE: u32 = 2;
pub const LAYER_SIGNALLED: u32 = 3;
pub const LAYER_WOKEN: u32 = 4;
pub const LAYER_TAKE: u32 = 5;
pub const LAYER_DESERIALISE: u32 = 6;
pub const LAYER_VENDOR: u32 = 4096;
pub const LAYER_END: u32 = 0x8000_0000;

pub const KEY_SEQUENCE: u32 = 1;
pub const KEY_SOURCE_TIME: u32 = 2;

pub const STAMPS_MAX: usize = 8;

pub const EVENT_MATCHED: u32 = 1;
pub const EVENT_LOST: u32 = 2;
pub const EVENT_DEADLINE_MISSED: u32 = 3;
pub const EVENT_INCOMPATIBLE_QOS: u32 = 4;

pub const QOS_RELIABILITY: u64 = 1 << 0;
pub const QOS_HISTORY: u64 = 1 << 1;
pub const QOS_DURABILITY: u64 = 1 << 2;
pub const QOS_DEADLINE: u64 = 1 << 3;
pub const QOS_LIFESPAN: u64 = 1 << 4;
pub const QOS_LIVELINESS: u64 = 1 << 5;
pub const QOS_PARTITION: u64 = 1 << 6;
pub const BEST_EFFORT: u32 = 0;
pub const RELIABLE: u32 = 1;
pub const KEEP_LAST: u32 = 0;
pub const KEEP_ALL: u32 = 1;
pub const VOLATILE: u32 = 0;
pub const TRANSIENT_LOCAL: u32 = 1;
pub const AUTOMATIC: u32 = 0;
pub const MANUAL_BY_TOPIC: u32 = 1;

pub const TYPE_KEYED: u32 = 1 << 0;
pub const POLICY_DURABILITY: u32 = 2;
pub const POLICY_DEADLINE: u32 = 4;
pub const POLICY_LIVELINESS: u32 = 8;
pub const POLICY_RELIABILITY: u32 = 11;

pub const DISPATCH_POLL: u32 = 0;
pub const DISPATCH_WAITSET: u32 = 1;
pub const DISPATCH_LISTENER: u32 = 2;

pub const ORIGIN_LOANED: u32 = 1;
pub const ORIGIN_NATIVE: u32 = 2;
pub const ORIGIN_COPIED: u32 = 3;

pub const CLOCK_NONE: u32 = 0;
pub const CLOCK_MONOTONIC: u32 = 1;
pub const CLOCK_WALL: u32 = 2;
pub const SAMPLE_NOT_DATA: u32 = 1 << 0;
pub const SAMPLE_LOANED: u32 = 1 << 1;

pub const COUNTER_LOST: u64 = 1 << 0;
pub const COUNTER_REJECTED: u64 = 1 << 1;
pub const COUNTER_OVERWRITTEN: u64 = 1 << 2;
pub const COUNTER_DEADLINE: u64 = 1 << 3;
pub const COUNTER_RESENT: u64 = 1 << 4;

pub type Status = i32;
pub type Sink = extern "C" fn(user: *mut c_void, text: Text);
pub type DataFunction = extern "C" fn(user: *mut c_void);
pub type EventFunction = extern "C" fn(user: *mut c_void, event: u32, total: u64);
pub type PolicyFunction = extern "C" fn(*mut c_void, u32);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    pub data: *const u8,
    pub size: u64,
}

pub enum ContextHandle {}
pub enum NodeHandle {}
pub enum TypeHandle {}
pub enum WriterHandle {}
pub enum ReaderHandle {}
pub enum WaitsetHandle {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stamp {
    pub time_ns: i64,
    pub layer: u32,
    pub cpu: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct StampList {
    pub count: u32,
    pub reserved: u32,
    pub at: [Stamp; STAMPS_MAX],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct StampKey {
    pub writer_id: u64,
    pub middleware_sequence: u64,
    pub source_time_ns: i64,
}

/// Fields beyond `HOST_SIZE_1_0` exist only if `size` covers them; the same applies to the other structs.
#[repr(C)]
pub struct Host {
    pub size: u32,
    pub abi_version: u32,
    pub this: *mut c_void,
    pub log: extern "C" fn(*mut c_void, u32, Text),
    pub now_ns: extern "C" fn(*mut c_void) -> i64,
    pub stamp: extern "C" fn(*mut c_void, *mut c_void, u32, u64, i64),
    pub thread_begin: extern "C" fn(*mut c_void, u32, Text),
    pub thread_end: extern "C" fn(*mut c_void),
    pub fail: extern "C" fn(*mut c_void, Text),
    pub stamp_keyed: Option<extern "C" fn(*mut c_void, *mut c_void, *const StampKey, u32, i64, u32)>,
}

#[repr(C)]
pub struct ContextConfig {
    pub size: u32,
    pub abi_version: u32,
    pub domain: u32,
    pub reserved: u32,
    pub name: Text,
    pub profile: Text,
    pub options: Text,
    pub runtime_directory: Text,
    pub security: Text,
    pub network: Text,
}

#[repr(C)]
pub struct Qos {
    pub size: u32,
    pub abi_version: u32,
    pub present: u64,
    pub reliability: u32,
    pub history: u32,
    pub depth: u32,
    pub durability: u32,
    pub liveliness: u32,
    pub reserved: u32,
    pub blocking_ns_max: i64,
    pub deadline_ns: i64,
    pub lifespan_ns: i64,
    pub liveliness_lease_ns: i64,
    pub partition: Text,
}

#[repr(C)]
pub struct TypeConfig {
    pub size: u32,
    pub abi_version: u32,
    pub name: Text,
    pub max_bytes: u64,
    pub flags: u32,
    pub encapsulation: u32,
    pub hash: Text,
    pub instances: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct EndpointConfig {
    pub size: u32,
    pub abi_version: u32,
    pub type_: *mut TypeHandle,
    pub topic: Text,
    pub qos: *const Qos,
    pub dispatch: u32,
    pub flags: u32,
    pub user: *mut c_void,
    pub on_data: Option<DataFunction>,
    pub on_event: Option<EventFunction>,
    pub on_policy: Option<PolicyFunction>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Region {
    pub data: *mut u8,
    pub size: u64,
}

#[repr(C)]
pub struct Message {
    pub size: u32,
    pub abi_version: u32,
    pub origin: u32,
    pub region_count: u32,
    pub regions: [Region; REGIONS_MAX],
    pub adapter_data: *mut c_void,
    pub key: StampKey,
    pub stamps: StampList,
    pub instance: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct Sample {
    pub size: u32,
    pub abi_version: u32,
    pub flags: u32,
    pub region_count: u32,
    pub regions: [Region; REGIONS_MAX],
    pub writer_id: u64,
    pub middleware_sequence: u64,
    pub source_time_ns: i64,
    pub reception_time_ns: i64,
    pub source_clock: u32,
    pub reception_clock: u32,
    pub signalled_ns: i64,
    pub signalled_cpu: u32,
    pub reserved: u32,
    pub adapter_data: *mut c_void,
    pub stamps: StampList,
    pub instance: u32,
    pub reserved_too: u32,
}

#[repr(C)]
pub struct Matched {
    pub size: u32,
    pub abi_version: u32,
    pub count: u32,
    pub exact: u32,
}

#[repr(C)]
pub struct Counters {
    pub size: u32,
    pub abi_version: u32,
    pub present: u64,
    pub lost: u64,
    pub rejected: u64,
    pub overwritten: u64,
    pub deadline_missed: u64,
    pub resent: u64,
}

type Create<Parent, Object> = extern "C" fn(*mut Parent, *mut *mut Object) -> Status;
type CreateNamed<Parent, Object> = extern "C" fn(*mut Parent, Text, *mut *mut Object) -> Status;
type CreateFrom<Parent, Config, Object> =
    extern "C" fn(*mut Parent, *const Config, *mut *mut Object) -> Status;
type Enable<Object> = extern "C" fn(*mut Object) -> Status;
type Destroy<Object> = extern "C" fn(*mut Object);
type Ask<Object, Answer> = extern "C" fn(*mut Object, *mut Answer) -> Status;

#[repr(C)]
pub struct Table {
    pub size: u32,
    pub abi_version: u32,
    pub name: Text,
    pub probe: extern "C" fn(Text, Sink, *mut c_void) -> Status,
    pub context_create: extern "C" fn(*const ContextConfig, *mut *mut ContextHandle) -> Status,
    pub context_enable: Enable<ContextHandle>,
    pub node_create: CreateNamed<ContextHandle, NodeHandle>,
    pub type_create: CreateFrom<ContextHandle, TypeConfig, TypeHandle>,
    pub writer_create: CreateFrom<NodeHandle, EndpointConfig, WriterHandle>,
    pub writer_enable: Enable<WriterHandle>,
    pub reader_create: CreateFrom<NodeHandle, EndpointConfig, ReaderHandle>,
    pub reader_enable: Enable<ReaderHandle>,
    pub reader_destroy: Destroy<ReaderHandle>,
    pub writer_destroy: Destroy<WriterHandle>,
    pub type_destroy: Destroy<TypeHandle>,
    pub node_destroy: Destroy<NodeHandle>,
    pub context_destroy: Destroy<ContextHandle>,
    pub borrow: extern "C" fn(*mut WriterHandle, u64, *mut Message) -> Status,
    pub commit: Ask<WriterHandle, Message>,
    pub discard: extern "C" fn(*mut WriterHandle, *mut Message),
    pub take: extern "C" fn(*mut ReaderHandle, *mut Sample, u32, u32, *mut u32) -> Status,
    pub release: extern "C" fn(*mut ReaderHandle, *mut Sample, u32, u32),
    pub writer_matched: Ask<WriterHandle, Matched>,
    pub reader_matched: Ask<ReaderHandle, Matched>,
    pub writer_counters: Ask<WriterHandle, Counters>,
    pub reader_counters: Ask<ReaderHandle, Counters>,
    pub describe: extern "C" fn(u32, *const c_void, Sink, *mut c_void) -> Status,
    pub waitset_create: Option<Create<ContextHandle, WaitsetHandle>>,
    pub waitset_attach: Option<extern "C" fn(*mut WaitsetHandle, *mut ReaderHandle) -> Status>,
    pub waitset_wait: Option<extern "C" fn(*mut WaitsetHandle, i64) -> Status>,
    pub waitset_trigger: Option<Destroy<WaitsetHandle>>,
    pub waitset_destroy: Option<Destroy<WaitsetHandle>>,
    pub extension: extern "C" fn(u32, *mut c_void, Text) -> *const c_void,
    pub waitset_wait_ready: Option<extern "C" fn(*mut WaitsetHandle, i64, *mut u32, u32, *mut u32) -> Status>,
}

// SAFETY: a table is written once, at compile time, and only points at static text and functions.
unsafe impl Sync for Table {}

/// Creates both ends of a client or of a server from node, request and reply.
pub type CreateEnds<First, Second> = extern "C" fn(
    *mut NodeHandle,
    *const EndpointConfig,
    *const EndpointConfig,
    *mut *mut First,
    *mut *mut Second,
) -> Status;

/// The table of the extension `services/1` (`lagometer/services.h`).
#[repr(C)]
pub struct ServicesTable {
    pub size: u32,
    pub abi_version: u32,
    pub client_create: CreateEnds<WriterHandle, ReaderHandle>,
    pub server_create: CreateEnds<ReaderHandle, WriterHandle>,
    pub answer: extern "C" fn(*mut WriterHandle, *const Sample) -> Status,
}

/// The table of the extension `stamps/1` (`lagometer/stamps.h`).
#[repr(C)]
pub struct StampsTable {
    pub size: u32,
    pub abi_version: u32,
    pub layers: u64,
    pub key: u32,
    pub reserved: u32,
    pub ask: extern "C" fn(*mut c_void, u64) -> Status,
}
