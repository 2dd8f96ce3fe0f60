// SPDX-License-Identifier: Apache-2.0
//! What a study can configure about a participant's sockets.
use std::net::{IpAddr, Ipv4Addr};

use lagometer_adapter::{kernel_socket_limit, ContextConfig, Description, Profile};
use rustdds::DomainParticipantBuilder;
use serde_json::{json, Value};

/// For the profile `matched`: the buffers of every socket.
const MATCHED_BUFFER_BYTES: usize = 4 << 20;
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The sockets of a participant: their buffers, and on which interface they are.
#[derive(Debug, Clone)]
pub struct Sockets {
    interface: IpAddr,
    receive_buffer_bytes: usize,
    send_buffer_bytes: usize,
}

impl Sockets {
    /// As set by the options `socket_receive_buffer_bytes` and `socket_send_buffer_bytes`, or by the profile.
    pub fn new(config: &ContextConfig) -> Self {
        let (profile, options) = (config.profile, &config.options);
        let bytes = |name: &str, vendors: usize| {
            let usual = if profile == Profile::Matched { MATCHED_BUFFER_BYTES } else { vendors };
            options.integer(name).map_or(usual, |bytes| bytes.unsigned_abs() as usize)
        };
        Self {
            interface: config.link.as_ref().map_or(LOOPBACK, |link| IpAddr::V4(link.address)),
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

    /// Only the loopback, or the link to the trial's other hosts, is announced and used for sending.
    pub(crate) fn builder(&self, domain: u16) -> DomainParticipantBuilder {
        DomainParticipantBuilder::new(domain)
            .with_only_networks([self.interface])
            .socket_receive_buffer_size(self.receive_buffer_bytes)
            .socket_send_buffer_size(self.send_buffer_bytes)
    }

    /// The same as text, to be pasted into a program.
    pub fn paste(&self, domain: u16) -> String {
        format!(
            "DomainParticipantBuilder::new({domain})\n    .with_only_networks([IpAddr::from([{}])])\n    \
             .socket_receive_buffer_size({})\n    .socket_send_buffer_size({})\n    .build()",
            self.interface.to_string().replace('.', ", "),
            self.receive_buffer_bytes,
            self.send_buffer_bytes
        )
    }

    /// The effective settings.
    pub fn describe(&self) -> Description {
        let receive = DomainParticipantBuilder::DEFAULT_SOCKET_RECEIVE_BUFFER_SIZE;
        let send = DomainParticipantBuilder::DEFAULT_SOCKET_SEND_BUFFER_SIZE;
        let limit = |name: &str| kernel_socket_limit(name).map_or(Value::Null, Value::from);
        Description::default()
            .transport(&["udp"], &["udp"])
            .setting("only_networks", json!([self.interface.to_string()]), Value::Null)
            .setting("socket_receive_buffer_size", self.receive_buffer_bytes, receive)
            .setting("socket_send_buffer_size", self.send_buffer_bytes, send)
            .observed("net.core.rmem_max", limit("rmem_max"))
            .observed("net.core.wmem_max", limit("wmem_max"))
    }
}
