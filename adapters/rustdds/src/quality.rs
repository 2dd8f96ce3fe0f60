// SPDX-License-Identifier: Apache-2.0
//! Quality of service in RustDDS's terms, and the effective values.
use lagometer_adapter::{Description, Endpoint, History};
use rustdds::policy::{Durability, Reliability, ResourceLimits};
use rustdds::{policy, Duration, QosPolicies, QosPolicyBuilder};

use crate::settings::Settings;

/// Unless the study says otherwise, KEEP_ALL holds this much of the largest messages, within these bounds.
const KEEP_ALL_BYTES: usize = 256 << 20;
const KEEP_ALL_MIN: usize = 256;
const KEEP_ALL_MAX: usize = 65_536;

/// What the study requests; the rest is the vendor's.
pub(crate) fn policies(settings: &Settings, endpoint: &Endpoint) -> QosPolicies {
    let qos = &endpoint.qos;
    let mut asked = QosPolicyBuilder::new();
    asked = match qos.reliable {
        Some(true) => asked.reliable(Duration::from_std(qos.blocking_max)),
        Some(false) => asked.best_effort(),
        None => asked,
    };
    asked = match qos.transient_local {
        Some(true) => asked.durability(Durability::TransientLocal),
        Some(false) => asked.durability(Durability::Volatile),
        None => asked,
    };
    asked = match qos.history {
        Some(History::KeepLast(depth)) => {
            asked.history(policy::History::KeepLast { depth: i32::try_from(depth).unwrap_or(i32::MAX) })
        }
        // Without its own limits, a reader keeps 64 samples, whatever its history, and loses the oldest.
        Some(History::KeepAll) => {
            let samples = settings.keep_all_samples.unwrap_or_else(|| fitting(endpoint.payload.bytes_max));
            asked.history(policy::History::KeepAll).resource_limits(limits(samples))
        }
        None => asked,
    };
    asked.build()
}

fn fitting(bytes_max: usize) -> i32 {
    (KEEP_ALL_BYTES / bytes_max).clamp(KEEP_ALL_MIN, KEEP_ALL_MAX) as i32
}

fn limits(samples: i32) -> ResourceLimits {
    ResourceLimits { max_samples: samples, max_instances: 1, max_samples_per_instance: samples }
}

/// The policies of an endpoint that differ from the vendor's.
pub(crate) fn describe(qos: &QosPolicies) -> Description {
    let mut description = Description::default();
    if let Some(Reliability::Reliable { max_blocking_time }) = qos.reliability() {
        description = description.setting("reliability", "reliable", "best_effort").setting(
            "max_blocking_time_ns",
            max_blocking_time.to_nanoseconds(),
            serde_json::Value::Null,
        );
    }
    description = match qos.history() {
        Some(policy::History::KeepAll) => description.setting("history", "keep_all", "keep_last 1"),
        Some(policy::History::KeepLast { depth }) => {
            description.setting("history", format!("keep_last {depth}"), "keep_last 1")
        }
        None => description,
    };
    if qos.durability() == Some(Durability::TransientLocal) {
        description = description.setting("durability", "transient_local", "volatile");
    }
    if let Some(limits) = qos.resource_limits() {
        description = description.setting("max_samples", limits.max_samples, serde_json::Value::Null);
    }
    description
}
