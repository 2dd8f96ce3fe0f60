// SPDX-License-Identifier: Apache-2.0
//! Readers: a subscription makes an object of each message when it is taken.
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{Doing, Endpoint, Reader, Result, Ros2Message, Sample, Signalled, Status, View};
use lagometer_rustdds_common::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use lagometer_rustdds_common::{refuse_listener, Awaited, Facts, Participant, Told};
use ros2_client::qos::QosProfile;
use ros2_client::Subscription;
use rustdds::mio1::event::Source;
use rustdds::GUID;

use crate::context::{Nodes, Ros2Context, SharedNodes, Wanted};
use crate::quality;

/// What a subscription of any of the types does.
trait Receiving: Send + Source {
    fn take_one(&self) -> Result<Option<Places>>;
    fn identity(&self) -> GUID;
}

impl<M: Message> Receiving for Subscription<M> {
    fn take_one(&self) -> Result<Option<Places>> {
        Ok(self.take().doing("taking")?.map(|(message, _)| message.into_places()))
    }
    fn identity(&self) -> GUID {
        self.guid()
    }
}

/// A subscription.
pub(crate) struct Ros2Reader {
    reader: Option<Box<dyn Receiving>>,
    wanted: Wanted,
    told: Told,
    nodes: SharedNodes,
    facts: Arc<Facts>,
}

fn made<M: Message>(nodes: &Nodes, participant: &Participant, wanted: &Wanted) -> Result<Box<dyn Receiving>> {
    nodes.make(participant, wanted, |node, topic| {
        let subscription = node.create_subscription::<M>(topic, Some(wanted.profile.clone()));
        let doing = format!("making a subscription to '{}'", wanted.topic);
        Ok(Box::new(subscription.doing(doing)?) as Box<dyn Receiving>)
    })
}

impl Ros2Reader {
    pub(crate) fn new(context: &Ros2Context, endpoint: &Endpoint) -> Result<Self> {
        refuse_listener(endpoint)?;
        let wanted = Wanted::new(endpoint, QosProfile::subscription_default())?;
        let description = quality::describe(&wanted.profile, &QosProfile::subscription_default());
        Ok(Self {
            reader: None,
            wanted,
            told: Told::default(),
            nodes: context.nodes(),
            facts: Arc::new(Facts::of_reader(context.participant(), description)),
        })
    }
}

impl Awaited for Ros2Reader {
    fn told(&mut self) -> &mut Told {
        &mut self.told
    }
}

impl Reader for Ros2Reader {
    type Sample = Ros2Sample;

    fn enable(&mut self) -> Result<()> {
        let (nodes, participant) = (Nodes::of(&self.nodes)?, self.facts.participant()?);
        let mut reader = match self.wanted.message {
            None => made::<Bytes>(nodes, participant, &self.wanted)?,
            Some(Ros2Message::String) => made::<Text>(nodes, participant, &self.wanted)?,
            Some(Ros2Message::Image) => made::<Image>(nodes, participant, &self.wanted)?,
            Some(Ros2Message::Imu) => made::<Imu>(nodes, participant, &self.wanted)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(nodes, participant, &self.wanted)?,
        };
        self.told.enable(reader.as_mut())?;
        self.facts.enabled_as(reader.identity());
        self.reader = Some(reader);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Ros2Sample>> {
        let Some(reader) = &self.reader else { return Ok(None) };
        self.told.set_untaken(false);
        let taken = reader.take_one()?;
        self.told.set_untaken(taken.is_some());
        Ok(taken.map(Ros2Sample))
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
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
