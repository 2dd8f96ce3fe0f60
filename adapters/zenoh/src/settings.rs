// SPDX-License-Identifier: Apache-2.0
//! What a study can configure, and the resulting configuration of a session.
use std::net::Ipv4Addr;
use std::path::Path;

use lagometer_adapter::{Error, Link, Options, Profile, Result};
use lagometer_zenoh_common::{connect_again_soon, free_tcp_endpoint, scouting, unique_name, Change, Changes};
use serde_json::json;
use zenoh::qos::CongestionControl;

/// For the profile `matched`: the socket buffers of every link.
const MATCHED_SOCKET_BUFFER_BYTES: u32 = 4 << 20;

/// Where a trial's router listens; adapter.json, which starts it, has the same address.
const ROUTER_TCP: &str = "tcp/127.0.0.1:17447";
const ROUTER_SOCKET: &str = "zenoh-router.sock";

/// What carries messages between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// TCP on the loopback.
    Tcp,
    /// Unix-domain stream sockets.
    Unix,
    /// Buffers in shared memory; Unix-domain stream sockets carry their descriptors.
    SharedMemory,
}

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) transport: Transport,
    pub(crate) congestion_control: Option<CongestionControl>,
    pub(crate) express: bool,
    pub(crate) router: bool,
    pub(crate) shm_pool_bytes: Option<usize>,
    pub(crate) keep_all_messages: Option<usize>,
    pub(crate) socket_buffer_bytes: Option<u32>,
}

impl Settings {
    pub(crate) fn new(profile: Profile, options: &Options) -> Result<Self> {
        let matched = profile == Profile::Matched;
        let transport = match options.text("transport") {
            Some("unix") => Transport::Unix,
            Some("shared-memory") => Transport::SharedMemory,
            _ => Transport::Tcp,
        };
        let asked = options.integer("socket_buffer_bytes").and_then(|bytes| u32::try_from(bytes).ok());
        if asked.is_some() && transport != Transport::Tcp {
            return Err(Error::invalid("option 'socket_buffer_bytes' is for transport tcp alone"));
        }
        let matched_buffer = (matched && transport == Transport::Tcp).then_some(MATCHED_SOCKET_BUFFER_BYTES);
        Ok(Self {
            transport,
            congestion_control: match options.text("congestion_control") {
                Some("drop") => Some(CongestionControl::Drop),
                Some("block") => Some(CongestionControl::Block),
                _ => None,
            },
            express: options.boolean("express") || matched,
            router: options.boolean("router"),
            shm_pool_bytes: options.integer("shm_pool_bytes").map(|bytes| bytes as usize),
            keep_all_messages: options.integer("keep_all_messages").map(|count| count as usize),
            socket_buffer_bytes: asked.or(matched_buffer),
        })
    }

    /// A unique endpoint to listen at.
    pub(crate) fn free_endpoint(&self, folder: &Path, link: Option<&Link>) -> Result<String> {
        if self.transport == Transport::Tcp {
            return free_tcp_endpoint(link.map_or(Ipv4Addr::LOCALHOST, |link| link.address));
        }
        Ok(format!("unixsock-stream/{}.sock", folder.join(unique_name("peer")).display()))
    }

    /// Where the trial's router listens, which is ready before any worker starts.
    pub(crate) fn router_endpoint(&self, runtime_directory: &Path) -> String {
        match self.transport {
            Transport::Tcp => ROUTER_TCP.to_owned(),
            _ => format!("unixsock-stream/{}", runtime_directory.join(ROUTER_SOCKET).display()),
        }
    }

    /// Changes to the vendor's configuration. `listen`: where this peer listens, none for a client of a
    /// router; `connect`: where others listen; `link`: the link on which it finds others.
    pub(crate) fn changes(&self, listen: Option<&str>, connect: &[String], link: Option<&Link>) -> Changes {
        let shm = self.transport == Transport::SharedMemory;
        let mode = if listen.is_some() { "peer" } else { "client" };
        let with_buffers = |endpoint: &str| self.with_buffers(endpoint);
        let listen: Vec<String> = listen.into_iter().map(with_buffers).collect();
        let connect: Vec<String> = connect.iter().map(String::as_str).map(with_buffers).collect();
        let mut changes = vec![Change::new("mode", mode, "peer")];
        changes.extend(scouting(link));
        changes.extend([
            Change::new("connect/endpoints", connect, json!([])),
            connect_again_soon(),
            // The crate's default features don't include shared memory, whatever the configuration says.
            Change::new("transport/shared_memory/enabled", shm, false),
            Change::new("listen/endpoints", listen, json!(["tcp/[::]:0"])),
        ]);
        changes.into()
    }

    /// The term in docs/ADAPTERS.md for what carries messages between processes.
    pub(crate) fn transport_word(&self) -> &'static str {
        match self.transport {
            Transport::Tcp => "tcp",
            Transport::Unix => "unix-socket",
            Transport::SharedMemory => "shared-memory",
        }
    }

    /// The option in force; each writer reports which of the two applies.
    pub(crate) fn congestion_control_word(&self) -> &'static str {
        match self.congestion_control {
            None => "by_reliability",
            Some(CongestionControl::Drop) => "drop",
            Some(_) => "block",
        }
    }

    fn with_buffers(&self, endpoint: &str) -> String {
        match self.socket_buffer_bytes {
            Some(bytes) => format!("{endpoint}#so_sndbuf={bytes};so_rcvbuf={bytes}"),
            None => endpoint.to_owned(),
        }
    }
}
