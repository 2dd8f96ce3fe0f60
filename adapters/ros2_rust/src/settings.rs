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
    /// Whether nodes have a publisher of their log.
    pub(crate) rosout: bool,
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
            rosout: options.boolean("rosout"),
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
            "Context::from_domain_participant(\n    DomainParticipantBuilder::new({domain})\n        \
             .with_only_networks([Ipv4Addr::LOCALHOST])\n        .socket_receive_buffer_size({})\n        \
             .socket_send_buffer_size({})\n        .build()?,\n)\nNodeOptions::new().enable_rosout({})\n",
            self.receive_buffer_bytes, self.send_buffer_bytes, self.rosout
        );
        let limit = |name: &str| kernel_limit(name).map_or(Value::Null, Value::from);
        Description::default()
            .transport(&["udp"], &["udp"])
            .setting("only_networks", json!([LOOPBACK.to_string()]), Value::Null)
            .setting("socket_receive_buffer_size", self.receive_buffer_bytes, receive)
            .setting("socket_send_buffer_size", self.send_buffer_bytes, send)
            .setting("enable_rosout", self.rosout, true)
            .observed("net.core.rmem_max", limit("rmem_max"))
            .observed("net.core.wmem_max", limit("wmem_max"))
            .paste("context.rs", &text)
    }
}

/// What the kernel gives a socket at most, if it tells.
fn kernel_limit(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}
