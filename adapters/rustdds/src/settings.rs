// SPDX-License-Identifier: Apache-2.0
//! What a study may set, and the participant that comes of it.
use std::net::{IpAddr, Ipv4Addr};

use lagometer_adapter::{Description, Options, Profile};
use rustdds::DomainParticipantBuilder;
use serde_json::{json, Value};

/// Of the profile `matched`: the buffers of every socket.
const MATCHED_SOCKET_BUFFER_BYTES: usize = 4 << 20;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Whether octets get on the wire and off it all at once, and not one by one through Serde.
    pub(crate) bulk_serialization: bool,
    /// RESOURCE_LIMITS with KEEP_ALL; none: from the size of a payload.
    pub(crate) keep_all_samples: Option<i32>,
    receive_buffer_bytes: usize,
    send_buffer_bytes: usize,
}

impl Settings {
    pub(crate) fn new(profile: Profile, options: &Options) -> Self {
        let bytes = |name: &str, vendors: usize| {
            let usual = if profile == Profile::Matched { MATCHED_SOCKET_BUFFER_BYTES } else { vendors };
            options.integer(name).map_or(usual, |bytes| bytes.unsigned_abs() as usize)
        };
        Self {
            bulk_serialization: options.boolean("bulk_serialization") || profile == Profile::Matched,
            keep_all_samples: options.integer("keep_all_samples").map(|count| count as i32),
            receive_buffer_bytes: bytes(
                "socket_receive_buffer_bytes",
                DomainParticipantBuilder::DEFAULT_SOCKET_RECEIVE_BUFFER_SIZE,
            ),
            send_buffer_bytes: bytes(
                "socket_send_buffer_bytes",
                DomainParticipantBuilder::DEFAULT_SOCKET_SEND_BUFFER_SIZE,
            ),
        }
    }

    /// Nothing leaves the machine: the loopback is the only interface that is announced and sent on.
    pub(crate) fn builder(&self, domain: u16) -> DomainParticipantBuilder {
        DomainParticipantBuilder::new(domain)
            .with_only_networks([LOOPBACK])
            .socket_receive_buffer_size(self.receive_buffer_bytes)
            .socket_send_buffer_size(self.send_buffer_bytes)
    }

    pub(crate) fn describe(&self, domain: u16) -> Description {
        let receive = DomainParticipantBuilder::DEFAULT_SOCKET_RECEIVE_BUFFER_SIZE;
        let send = DomainParticipantBuilder::DEFAULT_SOCKET_SEND_BUFFER_SIZE;
        let text = format!(
            "DomainParticipantBuilder::new({domain})\n    .with_only_networks([Ipv4Addr::LOCALHOST])\n    \
             .socket_receive_buffer_size({})\n    .socket_send_buffer_size({})\n    .build()\n",
            self.receive_buffer_bytes, self.send_buffer_bytes
        );
        let limit = |name: &str| kernel_limit(name).map_or(Value::Null, Value::from);
        Description::default()
            .transport(&["udp"], &["udp"])
            .setting("only_networks", json!([LOOPBACK.to_string()]), Value::Null)
            .setting("socket_receive_buffer_size", self.receive_buffer_bytes, receive)
            .setting("socket_send_buffer_size", self.send_buffer_bytes, send)
            .setting("bulk_serialization", self.bulk_serialization, false)
            .setting("keep_all_samples", self.keep_all_samples, Value::Null)
            .observed("net.core.rmem_max", limit("rmem_max"))
            .observed("net.core.wmem_max", limit("wmem_max"))
            .paste("participant.rs", &text)
    }
}

/// What the kernel gives a socket at most, if it tells.
fn kernel_limit(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}
