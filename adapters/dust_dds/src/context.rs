// SPDX-License-Identifier: Apache-2.0
//! A context is one participant, created by `enable`: it announces itself as soon as it exists.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dust_dds::dds_async::domain_participant::DomainParticipantAsync;
use dust_dds::dds_async::domain_participant_factory::DomainParticipantFactoryAsync;
use dust_dds::dds_async::publisher::PublisherAsync;
use dust_dds::dds_async::subscriber::SubscriberAsync;
use dust_dds::dds_async::topic::TopicAsync;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::QosKind;
use dust_dds::infrastructure::status::NO_STATUS;
use lagometer_adapter::{Context, ContextConfig, Description, Doing, Error, Result};

use crate::blocking::block_on;
use crate::form::Form;
use crate::message::Message;
use crate::settings::Settings;

/// Above this, the ports that RTPS computes from a domain do not exist.
const DOMAIN_MAX: u32 = 232;

/// The library has one factory for the whole process; its settings apply to the participants that it creates
/// next.
static FACTORY: Mutex<()> = Mutex::new(());

/// One participant.
pub(crate) struct DustContext {
    settings: Settings,
    domain: i32,
    participant: SharedParticipant,
}

/// A participant shared by its endpoints, once it exists.
pub(crate) type SharedParticipant = Arc<OnceLock<Participant>>;

/// A participant, and what creates its endpoints.
pub(crate) struct Participant {
    participant: DomainParticipantAsync,
    publisher: PublisherAsync,
    subscriber: SubscriberAsync,
    /// One for each name, shared by readers and writers.
    topics: Mutex<BTreeMap<String, (Form, TopicAsync)>>,
}

impl DustContext {
    pub(crate) fn new(config: &ContextConfig) -> Result<Self> {
        if config.domain > DOMAIN_MAX {
            let why = format!("a DDS domain is 0 to {DOMAIN_MAX}, not {}", config.domain);
            return Err(Error::invalid(why));
        }
        Ok(Self {
            settings: Settings::new(config)?,
            domain: config.domain as i32,
            participant: Arc::default(),
        })
    }

    pub(crate) fn participant(&self) -> SharedParticipant {
        self.participant.clone()
    }
}

impl Context for DustContext {
    fn enable(&self) -> Result<()> {
        let participant = Participant::new(&self.settings, self.domain)?;
        self.participant.set(participant).map_err(|_| Error::invalid("a context enabled twice"))
    }

    fn describe(&self) -> Description {
        self.settings.describe()
    }
}

impl Participant {
    fn new(settings: &Settings, domain: i32) -> Result<Self> {
        let _one_at_a_time = FACTORY.lock().unwrap_or_else(PoisonError::into_inner);
        let factory = DomainParticipantFactoryAsync::get_instance();
        let made = block_on(async {
            settings.configure(&mut *factory.get_mut_transport().await)?;
            *factory.get_mut_configuration().await = settings.configuration()?;
            let participant =
                factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS).await?;
            let publisher = participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS).await?;
            let subscriber = participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS).await?;
            Ok(Self { participant, publisher, subscriber, topics: Mutex::default() })
        });
        made.doing("making the participant")
    }

    /// The participant of an endpoint that is being enabled.
    pub(crate) fn of(shared: &SharedParticipant) -> Result<&Self> {
        shared.get().ok_or_else(|| Error::invalid("an endpoint enabled before its context"))
    }

    pub(crate) fn publisher(&self) -> &PublisherAsync {
        &self.publisher
    }

    pub(crate) fn subscriber(&self) -> &SubscriberAsync {
        &self.subscriber
    }

    /// The topic with this name, created if it does not exist yet.
    pub(crate) fn topic<M: Message>(&self, name: &str, form: Form) -> Result<TopicAsync> {
        let name = &form.topic(name);
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((other, topic)) = topics.get(name) {
            if *other != form {
                return Err(Error::invalid(format!("topic '{name}' is there with another type")));
            }
            return Ok(topic.clone());
        }
        let made = self.participant.create_topic::<M>(
            name,
            form.type_name(),
            QosKind::Default,
            NO_LISTENER,
            NO_STATUS,
        );
        let topic = block_on(made).doing(format!("making the topic '{name}'"))?;
        topics.insert(name.clone(), (form, topic.clone()));
        Ok(topic)
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // What can't be deleted ends with the process.
        let _ = block_on(async {
            self.participant.delete_contained_entities().await?;
            DomainParticipantFactoryAsync::get_instance().delete_participant(&self.participant).await
        });
    }
}
