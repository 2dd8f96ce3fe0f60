// SPDX-License-Identifier: Apache-2.0
//! Sizes and offsets of all structs that cross the border to C, as the C compiler lays them out. They are
//! checked here when this crate is compiled; `tests/integration/adapters/test_adapters_rust.py` reads these
//! lines and has the C compiler check the same numbers against `lagometer/adapter.h`.
use std::mem::{offset_of, size_of};

use crate::abi::*;

macro_rules! layout {
    ($name:ident, $c_name:ident, $size:literal, { $($field:ident: $offset:literal),+ $(,)? }) => {
        const _: () = assert!(size_of::<$name>() == $size);
        $(const _: () = assert!(offset_of!($name, $field) == $offset);)+
    };
}

layout!(Text, lagometer_string, 16, { data: 0, size: 8 });
layout!(Stamp, lagometer_stamp, 16, { time_ns: 0, layer: 8, cpu: 12 });
layout!(StampList, lagometer_stamp_list, 136, { count: 0, at: 8 });
layout!(StampKey, lagometer_stamp_key, 24, { writer_id: 0, middleware_sequence: 8, source_time_ns: 16 });
layout!(Host, lagometer_host, 72, {
    this: 8, log: 16, now_ns: 24, stamp: 32, thread_begin: 40, thread_end: 48, fail: 56, stamp_keyed: 64,
});
layout!(ContextConfig, lagometer_context_config, 112, {
    domain: 8, name: 16, profile: 32, options: 48, runtime_directory: 64, security: 80, network: 96,
});
layout!(Qos, lagometer_qos, 88, {
    present: 8, reliability: 16, history: 20, depth: 24, durability: 28, liveliness: 32, blocking_ns_max: 40,
    deadline_ns: 48, lifespan_ns: 56, liveliness_lease_ns: 64, partition: 72,
});
layout!(TypeConfig, lagometer_type_config, 64, {
    name: 8, max_bytes: 24, flags: 32, encapsulation: 36, hash: 40, instances: 56,
});
layout!(EndpointConfig, lagometer_endpoint_config, 80, {
    type_: 8, topic: 16, qos: 32, dispatch: 40, flags: 44, user: 48, on_data: 56, on_event: 64, on_policy: 72,
});
layout!(Region, lagometer_region, 16, { data: 0, size: 8 });
layout!(Message, lagometer_message, 256, {
    origin: 8, region_count: 12, regions: 16, adapter_data: 80, key: 88, stamps: 112, instance: 248,
});
layout!(Sample, lagometer_sample, 288, {
    flags: 8, region_count: 12, regions: 16, writer_id: 80, middleware_sequence: 88, source_time_ns: 96,
    reception_time_ns: 104, source_clock: 112, reception_clock: 116, signalled_ns: 120, signalled_cpu: 128,
    adapter_data: 136, stamps: 144, instance: 280,
});
layout!(Matched, lagometer_matched, 16, { count: 8, exact: 12 });
layout!(Counters, lagometer_counters, 56, {
    present: 8, lost: 16, rejected: 24, overwritten: 32, deadline_missed: 40, resent: 48,
});
layout!(ServicesTable, lagometer_services_table, 32, { client_create: 8, server_create: 16, answer: 24 });
layout!(StampsTable, lagometer_stamps_table, 32, { layers: 8, key: 16, ask: 24 });
layout!(Table, lagometer_adapter_table, 272, {
    name: 8, probe: 24, context_create: 32, context_enable: 40, node_create: 48, type_create: 56, writer_create: 64,
    writer_enable: 72, reader_create: 80, reader_enable: 88, reader_destroy: 96, writer_destroy: 104,
    type_destroy: 112, node_destroy: 120, context_destroy: 128, borrow: 136, commit: 144, discard: 152, take: 160,
    release: 168, writer_matched: 176, reader_matched: 184, writer_counters: 192, reader_counters: 200,
    describe: 208, waitset_create: 216, waitset_attach: 224, waitset_wait: 232, waitset_trigger: 240,
    waitset_destroy: 248, extension: 256, waitset_wait_ready: 264,
});
