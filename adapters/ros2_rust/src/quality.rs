// SPDX-License-Identifier: Apache-2.0
//! Quality of service in ros2-client's terms, and the effective values.
use lagometer_adapter::{Description, Endpoint, Error, History, Result};
use ros2_client::qos::{self, Durability, QosProfile, Reliability, WhenFull};
use serde_json::Value;

/// What the study requests; the rest is as in the given profile.
pub(crate) fn profile(vendors: QosProfile, endpoint: &Endpoint) -> Result<QosProfile> {
    let qos = &endpoint.qos;
    let mut asked = vendors;
    asked = match qos.reliable {
        Some(true) => asked.reliability_reliable(WhenFull::Wait(qos.blocking_max)),
        Some(false) => asked.reliability_best_effort(),
        None => asked,
    };
    asked = match qos.transient_local {
        Some(true) => asked.durability(Durability::TransientLocal),
        Some(false) => asked.durability(Durability::Volatile),
        None => asked,
    };
    match qos.history {
        Some(History::KeepLast(depth)) => Ok(asked.history(qos::History::KeepLast { depth })),
        Some(History::KeepAll) => {
            let why = "keep_all would keep 64 messages: its profiles have no RESOURCE_LIMITS";
            Err(Error::unsupported(format!("topic '{}': {why}", endpoint.topic)))
        }
        None => Ok(asked),
    }
}

/// The parts of a profile that differ from the vendor's.
pub(crate) fn describe(profile: &QosProfile, vendors: &QosProfile) -> Description {
    let [in_force, usual] = [profile, vendors]
        .map(|each| (reliability(each), blocking(each), history(each), format!("{:?}", each.durability)));
    Description::default()
        .setting("reliability", in_force.0, usual.0)
        .setting("when_full_wait_ns", in_force.1, usual.1)
        .setting("history", in_force.2, usual.2)
        .setting("durability", in_force.3, usual.3)
}

fn reliability(profile: &QosProfile) -> &'static str {
    match profile.reliability {
        Reliability::Reliable { .. } => "reliable",
        Reliability::BestEffort => "best_effort",
    }
}

fn blocking(profile: &QosProfile) -> Value {
    match profile.reliability {
        Reliability::Reliable { when_full: WhenFull::Wait(longest) } => {
            Value::from(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX))
        }
        _ => Value::Null,
    }
}

fn history(profile: &QosProfile) -> String {
    match profile.history {
        qos::History::KeepLast { depth } => format!("keep_last {depth}"),
        qos::History::KeepAll => "keep_all".to_owned(),
    }
}
