// SPDX-License-Identifier: Apache-2.0
//! What a study can configure, and the resulting transport and configuration.
use std::fs::read_to_string;
use std::net::Ipv4Addr;
use std::time::Duration;

use dust_dds::dds_async::configuration::{DustDdsConfiguration, DustDdsConfigurationBuilder};
use dust_dds::infrastructure::error::DdsResult;
use dust_dds::rtps_udp_transport::udp_transport::RtpsUdpTransportParticipantFactory;
use lagometer_adapter::{kernel_socket_limit, ContextConfig, Description, Doing, Error, Profile, Result};
use serde_json::Value;

/// The vendor's: see `RtpsUdpTransportParticipantFactory::default` and `DustDdsConfiguration::default`.
const VENDORS_FRAGMENT_BYTES: usize = 1344;
const VENDORS_ANNOUNCEMENT_MS: u64 = 5000;
/// For the profile `matched`: one datagram for up to about 64 KB, and the same buffers as in every adapter.
const MATCHED_FRAGMENT_BYTES: usize = 65_000;
const MATCHED_RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// The only interface used for listening and announcing, unless the trial has several hosts.
const LOOPBACK: &str = "lo";

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    interface: String,
    fragment_bytes: usize,
    /// None: the kernel's.
    receive_buffer_bytes: Option<usize>,
    announcement_ms: u64,
    type_information: bool,
}

impl Settings {
    pub(crate) fn new(config: &ContextConfig) -> Result<Self> {
        let (profile, options) = (config.profile, &config.options);
        let number = |name: &str| options.integer(name).map(i64::unsigned_abs);
        let bytes = |name: &str| number(name).map(|bytes| bytes as usize);
        let (fragment_bytes, receive_buffer_bytes) = match profile {
            Profile::Default => (VENDORS_FRAGMENT_BYTES, None),
            Profile::Matched => (MATCHED_FRAGMENT_BYTES, Some(MATCHED_RECEIVE_BUFFER_BYTES)),
        };
        Ok(Self {
            interface: match &config.link {
                Some(link) => interface_of(link.address)?,
                None => LOOPBACK.to_owned(),
            },
            fragment_bytes: bytes("fragment_size_bytes").unwrap_or(fragment_bytes),
            receive_buffer_bytes: bytes("socket_receive_buffer_bytes").or(receive_buffer_bytes),
            announcement_ms: number("announcement_interval_ms").unwrap_or(VENDORS_ANNOUNCEMENT_MS),
            type_information: options.boolean("type_information"),
        })
    }

    /// For the participants that are created next.
    pub(crate) fn configure(&self, transport: &mut RtpsUdpTransportParticipantFactory) -> DdsResult<()> {
        transport
            .set_interface_name(Some(self.interface.clone()))
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
            "transport\n    .set_interface_name(Some({:?}.to_owned()))\n    \
             .set_udp_receive_buffer_size({:?})\n    .set_fragment_size({})?;\n\
             DustDdsConfigurationBuilder::new()\n    \
             .participant_announcement_interval(Duration::from_millis({}))\n    \
             .enable_type_information({})\n    .build()?\n",
            self.interface,
            self.receive_buffer_bytes,
            self.fragment_bytes,
            self.announcement_ms,
            self.type_information
        );
        let limit = kernel_socket_limit("rmem_max").map_or(Value::Null, Value::from);
        Description::default()
            .transport(&["udp"], &["udp"])
            .setting("interface_name", self.interface.as_str(), Value::Null)
            .setting("fragment_size", self.fragment_bytes, VENDORS_FRAGMENT_BYTES)
            .setting("udp_receive_buffer_size", self.receive_buffer_bytes, Value::Null)
            .setting("participant_announcement_interval_ms", self.announcement_ms, VENDORS_ANNOUNCEMENT_MS)
            .setting("enable_type_information", self.type_information, true)
            .observed("net.core.rmem_max", limit)
            .paste("participant.rs", &text)
    }
}

/// The name of the interface in whose network this host has an address.
fn interface_of(address: Ipv4Addr) -> Result<String> {
    let table = read_to_string("/proc/self/net/route").doing("reading the kernel's table of routes")?;
    let found = table.lines().find_map(|line| interface_in(line, address));
    found.ok_or_else(|| Error::invalid(format!("no interface has a network with the address {address}")))
}

/// The interface in a line of the table, if it is the route to an address's network.
fn interface_in(line: &str, address: Ipv4Addr) -> Option<String> {
    const MASK: usize = 7;
    let columns: Vec<&str> = line.split_whitespace().collect();
    // The table has addresses as numbers in this machine's byte order.
    let number = |place: usize| u32::from_str_radix(columns.get(place)?, 16).ok().map(u32::to_ne_bytes);
    let (network, mask) = (u32::from_be_bytes(number(1)?), u32::from_be_bytes(number(MASK)?));
    let is_there = mask != 0 && u32::from(address) & mask == network;
    is_there.then(|| columns[0].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_an_address_is_read_from_the_kernels_table() {
        let heading = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
        let network = "eth0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0";
        let elsewhere = "eth1\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0";
        let address = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(interface_in(heading, address), None);
        assert_eq!(interface_in(network, address).as_deref(), Some("eth0"));
        assert_eq!(interface_in(elsewhere, address), None, "a default route says nothing of an address");
        assert_eq!(interface_in(network, Ipv4Addr::new(10, 78, 0, 2)), None);
    }
}
