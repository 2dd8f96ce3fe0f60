// SPDX-License-Identifier: Apache-2.0
//! Quality of service in iceoryx2's terms.
use std::time::Duration;

use lagometer_adapter::{Endpoint, Error, History, Result};

/// How many samples a subscriber may hold between take and release: the engine takes up to eight at a time.
const BORROWED: usize = 8;
/// For a service, in the vendor's configuration.
pub(crate) const BUFFER_DEFAULT: usize = 2;
pub(crate) const BORROWED_DEFAULT: usize = 2;
/// A KEEP_ALL queue holds this much of the largest messages, within these bounds.
const KEEP_ALL_BYTES: usize = 4 << 20;
const KEEP_ALL_MIN: usize = 8;
const KEEP_ALL_MAX: usize = 1024;

/// What both ends of a topic agree on, and what the publisher does when a queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quality {
    /// Whether the newest message replaces the oldest.
    pub(crate) overflows: bool,
    /// How many messages a subscriber's queue holds.
    pub(crate) buffer: usize,
    /// How many messages a subscriber may hold in addition.
    pub(crate) borrowed: usize,
    /// How long a publisher waits for room if nothing overflows.
    pub(crate) wait: Duration,
}

impl Quality {
    pub(crate) fn new(endpoint: &Endpoint, keep_all_messages: Option<usize>) -> Result<Self> {
        if endpoint.qos.transient_local == Some(true) {
            return Err(Error::unsupported(format!(
                "topic '{}': late readers get nothing of the past; ask for durability volatile",
                endpoint.topic
            )));
        }
        let wait =
            if endpoint.qos.reliable == Some(false) { Duration::ZERO } else { endpoint.qos.blocking_max };
        let fitting = (KEEP_ALL_BYTES / endpoint.payload.bytes_max).clamp(KEEP_ALL_MIN, KEEP_ALL_MAX);
        let (overflows, buffer) = match endpoint.qos.history {
            None => (true, BUFFER_DEFAULT),
            Some(History::KeepLast(depth)) => (true, depth),
            Some(History::KeepAll) => (false, keep_all_messages.unwrap_or(fitting)),
        };
        Ok(Self { overflows, buffer, borrowed: BORROWED, wait })
    }
}
