// SPDX-License-Identifier: Apache-2.0
//! Quality of service in hiroz's terms, and the effective values.
use std::num::NonZeroUsize;

use hiroz::qos::{QosDurability, QosHistory, QosProfile, QosReliability};
use lagometer_adapter::{Description, Endpoint, History};

/// What the study requests; the rest is the vendor's.
pub(crate) fn profile(endpoint: &Endpoint) -> QosProfile {
    let mut asked = QosProfile::default();
    if let Some(reliable) = endpoint.qos.reliable {
        asked.reliability = if reliable { QosReliability::Reliable } else { QosReliability::BestEffort };
    }
    if let Some(kept) = endpoint.qos.transient_local {
        asked.durability = if kept { QosDurability::TransientLocal } else { QosDurability::Volatile };
    }
    match endpoint.qos.history {
        Some(History::KeepLast(depth)) => {
            asked.history = QosHistory::KeepLast(NonZeroUsize::new(depth).unwrap_or(NonZeroUsize::MIN));
        }
        Some(History::KeepAll) => asked.history = QosHistory::KeepAll,
        None => (),
    }
    asked
}

/// The parts of a profile that differ from the vendor's.
pub(crate) fn describe(profile: &QosProfile) -> Description {
    let usual = QosProfile::default();
    Description::default()
        .setting("reliability", format!("{:?}", profile.reliability), format!("{:?}", usual.reliability))
        .setting("history", profile.history.to_string(), usual.history.to_string())
        .setting("durability", format!("{:?}", profile.durability), format!("{:?}", usual.durability))
}
