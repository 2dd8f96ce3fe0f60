// SPDX-License-Identifier: Apache-2.0
//! Readers: a subscription converts each message to an object when it is taken.
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    Doing, Endpoint, Error, Reader, Result, Ros2Message, Sample, Signalled, Status, View,
};
use lagometer_rustdds_common::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use lagometer_rustdds_common::{refuse_listener, Awaited, Facts, Participant, Told};
use ros2_client::qos::QosProfile;
use ros2_client::service::RmwRequestId;
use ros2_client::Subscription;
use rustdds::mio1::event::Source;
use rustdds::GUID;

use crate::context::{Nodes, Ros2Context, SharedNodes, Wanted};
use crate::quality;
use crate::services::Ends;

/// What a subscription of any of the types does.
pub(crate) trait Receiving: Send + Source {
    /// A message and, if it is a request, what a reply must refer to.
    fn take_one(&self) -> Result<Option<(Places, Option<RmwRequestId>)>>;
    /// None for an end of a service.
    fn identity(&self) -> Option<GUID> {
        None
    }
}

impl<M: Message> Receiving for Subscription<M> {
    fn take_one(&self) -> Result<Option<(Places, Option<RmwRequestId>)>> {
        Ok(self.take().doing("taking")?.map(|(message, _)| (message.into_places(), None)))
    }
    fn identity(&self) -> Option<GUID> {
        Some(self.guid())
    }
}

/// A subscription.
pub(crate) struct Ros2Reader {
    reader: Option<Box<dyn Receiving>>,
    service: Option<Arc<Ends>>,
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
            service: None,
            wanted,
            told: Told::default(),
            nodes: context.nodes(),
            facts: Arc::new(Facts::of_reader(context.participant(), description)),
        })
    }

    /// An end of a service.
    pub(crate) fn of(mut self, service: Arc<Ends>) -> Self {
        self.service = Some(service);
        self
    }

    fn subscription(&self) -> Result<Box<dyn Receiving>> {
        let (nodes, participant) = (Nodes::of(&self.nodes)?, self.facts.participant()?);
        match self.wanted.message {
            None => made::<Bytes>(nodes, participant, &self.wanted),
            Some(Ros2Message::String) => made::<Text>(nodes, participant, &self.wanted),
            Some(Ros2Message::Image) => made::<Image>(nodes, participant, &self.wanted),
            Some(Ros2Message::Imu) => made::<Imu>(nodes, participant, &self.wanted),
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(nodes, participant, &self.wanted),
        }
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
        let mut reader = match &self.service {
            Some(ends) => ends.receiving()?,
            None => self.subscription()?,
        };
        self.told.enable(reader.as_mut())?;
        if let Some(guid) = reader.identity() {
            self.facts.enabled_as(guid);
        }
        self.reader = Some(reader);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Ros2Sample>> {
        let Some(reader) = &self.reader else { return Ok(None) };
        self.told.set_untaken(false);
        let taken = reader.take_one()?;
        self.told.set_untaken(taken.is_some());
        Ok(taken.map(|(places, request)| Ros2Sample { places, request }))
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

/// The payload of a taken message.
pub(crate) struct Ros2Sample {
    places: Places,
    request: Option<RmwRequestId>,
}

impl Ros2Sample {
    /// What the reply to a request must refer to, once.
    pub(crate) fn request(&mut self) -> Result<RmwRequestId> {
        self.request
            .take()
            .ok_or_else(|| Error::invalid("an answer to what is not a request, or a second answer"))
    }
}

impl Sample for Ros2Sample {
    fn view(&self) -> View<'_> {
        View {
            regions: [&self.places.first, &self.places.second, &[], &[]],
            loaned: false,
            sequence: 0,
            signalled: Signalled::default(),
        }
    }
}
