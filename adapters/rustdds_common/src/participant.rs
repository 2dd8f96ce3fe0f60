// SPDX-License-Identifier: Apache-2.0
//! A context's participant, created when the context is enabled: it announces itself as soon as it exists.
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{ContextConfig, Description, Doing, Error, Result};
use rustdds::{DomainParticipant, QosPolicies, Topic, TopicKind};

use crate::acquaintances::Acquaintances;
use crate::ports;
use crate::sockets::Sockets;

/// Above this, the ports that RTPS computes from a domain do not exist.
const DOMAIN_MAX: u32 = 232;

/// A participant and the matches of its endpoints.
pub struct Participant {
    acquaintances: Acquaintances,
    domain_participant: DomainParticipant,
}

/// A participant shared by its endpoints, once it exists.
pub type SharedParticipant = Arc<OnceLock<Participant>>;

/// The DDS domain of a context.
pub fn domain(config: &ContextConfig) -> Result<u16> {
    if config.domain > DOMAIN_MAX {
        let why = format!("a DDS domain is 0 to {DOMAIN_MAX}, not {}", config.domain);
        return Err(Error::invalid(why));
    }
    Ok(config.domain as u16)
}

impl Participant {
    /// A participant that listens at the port that its writers announce.
    pub fn new(domain: u16, sockets: &Sockets) -> Result<Self> {
        let domain_participant =
            ports::make(domain, || sockets.builder(domain).build().doing("making the participant"))?;
        Ok(Self { acquaintances: Acquaintances::new(&domain_participant), domain_participant })
    }

    /// The participant of an endpoint that is being enabled.
    pub fn of(shared: &SharedParticipant) -> Result<&Self> {
        shared.get().ok_or_else(|| Error::invalid("an endpoint enabled before its context"))
    }

    /// Stores it, once, where its endpoints look for it.
    pub fn share(self, shared: &SharedParticipant) -> Result<()> {
        shared.set(self).map_err(|_| Error::invalid("a context enabled twice"))
    }

    /// RustDDS's own.
    pub fn domain_participant(&self) -> &DomainParticipant {
        &self.domain_participant
    }

    /// A topic without a key.
    pub fn topic(&self, name: &str, type_name: &str, qos: &QosPolicies) -> Result<Topic> {
        self.domain_participant
            .create_topic(name.to_owned(), type_name.to_owned(), qos, TopicKind::NoKey)
            .doing(format!("making the topic '{name}'"))
    }

    /// Adds what is known about the participant once it exists.
    pub fn describe(shared: &SharedParticipant, description: Description) -> Description {
        match shared.get() {
            Some(participant) => {
                description.observed("participant_id", participant.domain_participant.participant_id())
            }
            None => description,
        }
    }

    pub(crate) fn acquaintances(&self) -> &Acquaintances {
        &self.acquaintances
    }
}
