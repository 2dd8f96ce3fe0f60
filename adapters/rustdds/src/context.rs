// SPDX-License-Identifier: Apache-2.0
//! A context is one participant.
use lagometer_adapter::{Context, ContextConfig, Description, Endpoint, Result, Ros2Message};
use lagometer_rustdds_common::{domain, Participant, SharedParticipant};
use rustdds::QosPolicies;

use crate::settings::Settings;

/// One participant.
pub(crate) struct RustDdsContext {
    settings: Settings,
    domain: u16,
    participant: SharedParticipant,
}

impl RustDdsContext {
    pub(crate) fn new(config: &ContextConfig) -> Result<Self> {
        Ok(Self {
            settings: Settings::new(config),
            domain: domain(config)?,
            participant: SharedParticipant::default(),
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn participant(&self) -> SharedParticipant {
        self.participant.clone()
    }
}

impl Context for RustDdsContext {
    fn enable(&self) -> Result<()> {
        Participant::new(self.domain, &self.settings.sockets)?.share(&self.participant)
    }

    fn describe(&self) -> Description {
        Participant::describe(&self.participant, self.settings.describe(self.domain))
    }
}

/// The configuration for both kinds of endpoint.
pub(crate) struct Wanted {
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) qos: QosPolicies,
}

impl Wanted {
    pub(crate) fn new(context: &RustDdsContext, endpoint: &Endpoint) -> Result<Self> {
        let of_ros = endpoint.payload.message.is_some();
        Ok(Self {
            topic: if of_ros { Ros2Message::dds_topic(&endpoint.topic) } else { endpoint.topic.clone() },
            type_name: crate::wire::type_name(endpoint.payload)?,
            qos: crate::quality::policies(&context.settings, endpoint),
        })
    }
}
