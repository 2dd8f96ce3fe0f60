// SPDX-License-Identifier: Apache-2.0
//! Readers: a subscription makes an object of each message when it is taken.
use std::io;
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{
    Description, Dispatch, Doing, Endpoint, Error, Matched, Reader, Result, Ros2Message, Sample, Signalled,
    Status, View,
};
use ros2_client::qos::QosProfile;
use ros2_client::Subscription;
use rustdds::mio1::event::Source;
use rustdds::mio1::{Interest, Registry, Token};
use rustdds::GUID;

use crate::context::{matched, Participant, Ros2Context, SharedParticipant, Wanted};
use crate::message::{Bytes, Image, Imu, PointCloud2, Text};
use crate::payload::{Message, Places};
use crate::quality;
use crate::waitset::{Awaited, Untaken};

/// What a subscription of any of the types does.
trait Receiving: Send {
    fn take_one(&self) -> Result<Option<Places>>;
    fn wake(&mut self, registry: &Registry, token: Token) -> io::Result<()>;
    fn identity(&self) -> GUID;
}

impl<M: Message> Receiving for Subscription<M> {
    fn take_one(&self) -> Result<Option<Places>> {
        Ok(self.take().doing("taking")?.map(|(message, _)| message.into_places()))
    }
    fn wake(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.register(registry, token, Interest::READABLE)
    }
    fn identity(&self) -> GUID {
        self.guid()
    }
}

/// A subscription.
pub(crate) struct Ros2Reader {
    reader: Option<Box<dyn Receiving>>,
    wanted: Wanted,
    untaken: Untaken,
    /// Who is to be told, once it is enabled.
    told: Option<(Registry, Token)>,
    facts: Arc<ReaderStatus>,
}

struct ReaderStatus {
    participant: SharedParticipant,
    guid: OnceLock<GUID>,
    profile: QosProfile,
}

fn made<M: Message>(participant: &Participant, wanted: &Wanted) -> Result<Box<dyn Receiving>> {
    participant.make(wanted, |node, topic| {
        let subscription = node.create_subscription::<M>(topic, Some(wanted.profile.clone()));
        let doing = format!("making a subscription to '{}'", wanted.topic);
        Ok(Box::new(subscription.doing(doing)?) as Box<dyn Receiving>)
    })
}

impl Ros2Reader {
    pub(crate) fn new(context: &Ros2Context, endpoint: &Endpoint) -> Result<Self> {
        if endpoint.dispatch == Dispatch::Listener {
            let why = "there is no listener: a reader is waited for or polled";
            return Err(Error::unsupported(format!("topic '{}': {why}", endpoint.topic)));
        }
        let wanted = Wanted::new(endpoint, QosProfile::subscription_default())?;
        let facts = ReaderStatus {
            participant: context.participant(),
            guid: OnceLock::new(),
            profile: wanted.profile.clone(),
        };
        Ok(Self { reader: None, wanted, untaken: Untaken::default(), told: None, facts: Arc::new(facts) })
    }
}

impl Awaited for Ros2Reader {
    fn wait_by(&mut self, registry: Registry, token: Token) -> Result<Untaken> {
        if self.told.is_some() || self.reader.is_some() {
            return Err(Error::invalid("a reader belongs to one waitset, attached before it is enabled"));
        }
        self.told = Some((registry, token));
        Ok(self.untaken.clone())
    }
}

impl Reader for Ros2Reader {
    type Sample = Ros2Sample;

    fn enable(&mut self) -> Result<()> {
        let participant = Participant::of(&self.facts.participant)?;
        let mut reader = match self.wanted.message {
            None => made::<Bytes>(participant, &self.wanted)?,
            Some(Ros2Message::String) => made::<Text>(participant, &self.wanted)?,
            Some(Ros2Message::Image) => made::<Image>(participant, &self.wanted)?,
            Some(Ros2Message::Imu) => made::<Imu>(participant, &self.wanted)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(participant, &self.wanted)?,
        };
        if let Some((registry, token)) = &self.told {
            reader.wake(registry, *token).doing("registering a reader with a waitset")?;
        }
        let _ = self.facts.guid.set(reader.identity());
        self.reader = Some(reader);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Ros2Sample>> {
        let Some(reader) = &self.reader else { return Ok(None) };
        self.untaken.set(false);
        let taken = reader.take_one()?;
        self.untaken.set(taken.is_some());
        Ok(taken.map(Ros2Sample))
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

impl Drop for Ros2Reader {
    fn drop(&mut self) {
        self.reader = None;
        if let (Some(participant), Some(guid)) = (self.facts.participant.get(), self.facts.guid.get()) {
            participant.acquaintances().forget(*guid);
        }
    }
}

impl Status for ReaderStatus {
    fn matched(&self) -> Matched {
        matched(&self.participant, self.guid.get().copied())
    }
    fn describe(&self) -> Description {
        quality::describe(&self.profile, &QosProfile::subscription_default())
    }
}

/// The payload of a message that was taken.
pub(crate) struct Ros2Sample(Places);

impl Sample for Ros2Sample {
    fn view(&self) -> View<'_> {
        View {
            regions: [&self.0.first, &self.0.second, &[], &[]],
            loaned: false,
            sequence: 0,
            signalled: Signalled::default(),
        }
    }
}
