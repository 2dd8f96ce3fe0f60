// SPDX-License-Identifier: Apache-2.0
//! What a study may set, and the transport and configuration that come of it.
use std::time::Duration;

use dust_dds::dds_async::configuration::{DustDdsConfiguration, DustDdsConfigurationBuilder};
use dust_dds::infrastructure::error::DdsResult;
use dust_dds::rtps_udp_transport::udp_transport::RtpsUdpTransportParticipantFactory;
use lagometer_adapter::{kernel_socket_limit, Description, Options, Profile};
use serde_json::Value;

/// The vendor's: see `RtpsUdpTransportParticipantFactory::default` and `DustDdsConfiguration::default`.
const VENDORS_FRAGMENT_BYTES: usize = 1344;
const VENDORS_ANNOUNCEMENT_MS: u64 = 5000;
/// Of the profile `matched`: one datagram for up to about 64 KB, and the buffers of every adapter.
const MATCHED_FRAGMENT_BYTES: usize = 65_000;
const MATCHED_RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// The only interface that is listened on and announced.
const INTERFACE: &str = "lo";

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    fragment_bytes: usize,
    /// None: the kernel's.
    receive_buffer_bytes: Option<usize>,
    announcement_ms: u64,
    type_information: bool,
}

impl Settings {
    pub(crate) fn new(profile: Profile, options: &Options) -> Self {
        let number = |name: &str| options.integer(name).map(i64::unsigned_abs);
        let bytes = |name: &str| number(name).map(|bytes| bytes as usize);
        let (fragment_bytes, receive_buffer_bytes) = match profile {
            Profile::Default => (VENDORS_FRAGMENT_BYTES, None),
            Profile::Matched => (MATCHED_FRAGMENT_BYTES, Some(MATCHED_RECEIVE_BUFFER_BYTES)),
        };
        Self {
            fragment_bytes: bytes("fragment_size_bytes").unwrap_or(fragment_bytes),
            receive_buffer_bytes: bytes("socket_receive_buffer_bytes").or(receive_buffer_bytes),
            announcement_ms: number("announcement_interval_ms").unwrap_or(VENDORS_ANNOUNCEMENT_MS),
            type_information: options.boolean("type_information"),
        }
    }

    /// Of the participants that are made next.
    pub(crate) fn configure(&self, transport: &mut RtpsUdpTransportParticipantFactory) -> DdsResult<()> {
        transport
            .set_interface_name(Some(INTERFACE.to_owned()))
            .set_udp_receive_buffer_size(self.receive_buffer_bytes)
            .set_fragment_size(self.fragment_bytes)
            .map(|_| ())
    }

    /// Likewise.
    pub(crate) fn configuration(&self) -> DdsResult<DustDdsConfiguration> {
        DustDdsConfigurationBuilder::new()
            .participant_announcement_interval(Duration::from_millis(self.announcement_ms))
            .enable_type_information(self.type_information)
            .build()
    }

    pub(crate) fn describe(&self) -> Description {
        let text = format!(
            "transport\n    .set_interface_name(Some(\"{INTERFACE}\".to_owned()))\n    \
             .set_udp_receive_buffer_size({:?})\n    .set_fragment_size({})?;\n\
             DustDdsConfigurationBuilder::new()\n    \
             .participant_announcement_interval(Duration::from_millis({}))\n    \
             .enable_type_information({})\n    .build()?\n",
            self.receive_buffer_bytes, self.fragment_bytes, self.announcement_ms, self.type_information
        );
        let limit = kernel_socket_limit("rmem_max").map_or(Value::Null, Value::from);
        Description::default()
            .transport(&["udp"], &["udp"])
            .setting("interface_name", INTERFACE, Value::Null)
            .setting("fragment_size", self.fragment_bytes, VENDORS_FRAGMENT_BYTES)
            .setting("udp_receive_buffer_size", self.receive_buffer_bytes, Value::Null)
            .setting("participant_announcement_interval_ms", self.announcement_ms, VENDORS_ANNOUNCEMENT_MS)
            .setting("enable_type_information", self.type_information, true)
            .observed("net.core.rmem_max", limit)
            .paste("participant.rs", &text)
    }
}
