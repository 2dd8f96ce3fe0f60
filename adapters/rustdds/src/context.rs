// SPDX-License-Identifier: Apache-2.0
//! A context is one participant, made by `enable`: it announces itself as soon as it is there.
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{Context, ContextConfig, Description, Doing, Endpoint, Error, Matched, Result};
use rustdds::{DomainParticipant, QosPolicies, Topic, TopicKind, GUID};

use crate::acquaintances::Acquaintances;
use crate::ports::{self, DOMAIN_MAX};
use crate::settings::Settings;

/// One participant.
pub(crate) struct RustDdsContext {
    settings: Settings,
    domain: u16,
    participant: SharedParticipant,
}

/// A participant that its endpoints share, once it is there.
pub(crate) type SharedParticipant = Arc<OnceLock<Participant>>;

/// A participant and whom its endpoints know.
pub(crate) struct Participant {
    acquaintances: Acquaintances,
    domain_participant: DomainParticipant,
}

impl RustDdsContext {
    pub(crate) fn new(config: &ContextConfig) -> Result<Self> {
        if config.domain > DOMAIN_MAX {
            let why = format!("a DDS domain is 0 to {DOMAIN_MAX}, not {}", config.domain);
            return Err(Error::invalid(why));
        }
        Ok(Self {
            settings: Settings::new(config.profile, &config.options),
            domain: config.domain as u16,
            participant: Arc::default(),
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
        let domain_participant = ports::make(self.domain, || {
            self.settings.builder(self.domain).build().doing("making the participant")
        })?;
        let acquaintances = Acquaintances::new(&domain_participant);
        self.participant
            .set(Participant { acquaintances, domain_participant })
            .map_err(|_| Error::invalid("a context enabled twice"))
    }

    fn describe(&self) -> Description {
        let description = self.settings.describe(self.domain);
        match self.participant.get() {
            Some(participant) => {
                description.observed("participant_id", participant.domain_participant.participant_id())
            }
            None => description,
        }
    }
}

impl Participant {
    /// The participant of an endpoint that is being enabled.
    pub(crate) fn of(shared: &SharedParticipant) -> Result<&Self> {
        shared.get().ok_or_else(|| Error::invalid("an endpoint enabled before its context"))
    }

    pub(crate) fn domain_participant(&self) -> &DomainParticipant {
        &self.domain_participant
    }

    pub(crate) fn acquaintances(&self) -> &Acquaintances {
        &self.acquaintances
    }

    pub(crate) fn topic(&self, name: &str, type_name: &str, qos: &QosPolicies) -> Result<Topic> {
        self.domain_participant
            .create_topic(name.to_owned(), type_name.to_owned(), qos, TopicKind::NoKey)
            .doing(format!("making the topic '{name}'"))
    }
}

/// How many counterparts an endpoint has, if both it and its participant are there.
pub(crate) fn matched(shared: &SharedParticipant, endpoint: Option<GUID>) -> Matched {
    match (shared.get(), endpoint) {
        (Some(participant), Some(endpoint)) => Matched::Seen(participant.acquaintances.count(endpoint)),
        _ => Matched::Seen(0),
    }
}

/// What both kinds of endpoint are made from.
pub(crate) struct Wanted {
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) qos: QosPolicies,
}

impl Wanted {
    pub(crate) fn new(context: &RustDdsContext, endpoint: &Endpoint) -> Result<Self> {
        Ok(Self {
            topic: endpoint.topic.clone(),
            type_name: crate::payload::type_name(endpoint.payload)?,
            qos: crate::quality::policies(&context.settings, endpoint),
        })
    }
}
