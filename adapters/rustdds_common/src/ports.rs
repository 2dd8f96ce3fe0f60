// SPDX-License-Identifier: Apache-2.0
//! The ports of a participant. Its writers announce the port that RTPS computes from domain and participant.
//! If another process has that port, RustDDS listens at a different one but still announces the computed one:
//! then readers' acknowledgements and requests for lost messages go to a stranger. Such a participant is
//! dropped, and the next id is tried.
use std::collections::BTreeSet;
use std::fs::{read_dir, read_link, read_to_string};
use std::net::{Ipv4Addr, UdpSocket};

use lagometer_adapter::{Doing, Error, Result};
use rustdds::DomainParticipant;

/// From RTPS 2.5, 9.6.2.3.
const BASE: u16 = 7400;
const PER_DOMAIN: u16 = 250;
const PER_PARTICIPANT: u16 = 2;
const DISCOVERY: u16 = 10;
const USER_TRAFFIC: u16 = 11;

/// The number of participants that RustDDS looks for on the same host.
const ATTEMPTS: usize = 12;

/// Creates a participant that listens at the port that its writers announce.
pub(crate) fn make(
    domain: u16,
    participant: impl Fn() -> Result<DomainParticipant>,
) -> Result<DomainParticipant> {
    let mut held = Vec::new();
    for _ in 0..ATTEMPTS {
        let earlier = sockets()?;
        let made = participant()?;
        let id = made.participant_id();
        let new = &sockets()? - &earlier;
        if at(port(domain, id, USER_TRAFFIC))?.iter().any(|socket| new.contains(socket)) {
            return Ok(made);
        }
        drop(made);
        // Otherwise RustDDS would use this id again. If another process has the port, RustDDS does not use it
        // either.
        held.extend(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port(domain, id, DISCOVERY))));
    }
    Err(Error::no_resource(format!("{ATTEMPTS} participants of domain {domain} found their port taken")))
}

fn port(domain: u16, participant: u16, offset: u16) -> u16 {
    BASE + PER_DOMAIN * domain + PER_PARTICIPANT * participant + offset
}

/// The inodes of this process's sockets.
fn sockets() -> Result<BTreeSet<String>> {
    let descriptors = read_dir("/proc/self/fd").doing("listing this process's descriptors")?;
    let links = descriptors.flatten().filter_map(|descriptor| read_link(descriptor.path()).ok());
    Ok(links.filter_map(|link| inode(link.to_str()?).map(str::to_owned)).collect())
}

fn inode(link: &str) -> Option<&str> {
    link.strip_prefix("socket:[")?.strip_suffix(']')
}

/// The inodes of all processes' sockets at a UDP port.
fn at(port: u16) -> Result<Vec<String>> {
    let table = read_to_string("/proc/self/net/udp").doing("reading the kernel's table of UDP sockets")?;
    Ok(table.lines().filter_map(|line| inode_at(line, port)).map(str::to_owned).collect())
}

fn inode_at(line: &str, port: u16) -> Option<&str> {
    const LOCAL_ADDRESS: usize = 1;
    const INODE: usize = 9;
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (_, local) = columns.get(LOCAL_ADDRESS)?.split_once(':')?;
    let here = u16::from_str_radix(local, 16).ok()? == port;
    here.then(|| columns.get(INODE).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use rustdds::DomainParticipantBuilder;

    use super::*;

    /// Its ports are below those that the kernel assigns, and no other test uses it.
    const DOMAIN: u16 = 98;

    #[test]
    fn a_line_of_the_kernels_table_is_read() {
        let heading = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid";
        let line = "1031: 00000000:1CF5 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 4711 2";
        assert_eq!(inode_at(heading, 7413), None);
        assert_eq!(inode_at(line, 7413), Some("4711"));
        assert_eq!(inode_at(line, 7411), None);
        assert_eq!(inode("socket:[4711]"), Some("4711"));
        assert_eq!(inode("/dev/null"), None);
    }

    #[test]
    fn a_participant_whose_port_is_taken_is_given_up_for_the_next() {
        let builder = || DomainParticipantBuilder::new(DOMAIN).with_only_networks([Ipv4Addr::LOCALHOST]);
        let make = || make(DOMAIN, || builder().build().doing("making the participant")).unwrap();
        let first = make();
        let (taken, free) = (first.participant_id(), first.participant_id() + 1);
        drop(first);
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, port(DOMAIN, taken, USER_TRAFFIC))).unwrap();
        assert_eq!(make().participant_id(), free);
        drop(other);
        assert_eq!(make().participant_id(), taken);
    }
}
