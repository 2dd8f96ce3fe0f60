// SPDX-License-Identifier: Apache-2.0
//! What a study can configure, and the resulting participant.
use lagometer_adapter::{ContextConfig, Description, Profile};
use lagometer_rustdds_common::Sockets;
use serde_json::Value;

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Whether octets are serialised and deserialised in bulk, and not one by one through Serde.
    pub(crate) bulk_serialization: bool,
    /// RESOURCE_LIMITS with KEEP_ALL; none: derived from the payload's size.
    pub(crate) keep_all_samples: Option<i32>,
    pub(crate) sockets: Sockets,
}

impl Settings {
    pub(crate) fn new(config: &ContextConfig) -> Self {
        let (profile, options) = (config.profile, &config.options);
        Self {
            bulk_serialization: options.boolean("bulk_serialization") || profile == Profile::Matched,
            keep_all_samples: options.integer("keep_all_samples").map(|count| count as i32),
            sockets: Sockets::new(config),
        }
    }

    pub(crate) fn describe(&self, domain: u16) -> Description {
        self.sockets
            .describe()
            .setting("bulk_serialization", self.bulk_serialization, false)
            .setting("keep_all_samples", self.keep_all_samples, Value::Null)
            .paste("participant.rs", &format!("{}\n", self.sockets.paste(domain)))
    }
}
