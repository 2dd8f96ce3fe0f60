// SPDX-License-Identifier: Apache-2.0
//! Readers: a subscription converts each message to an object when it is taken.
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    writer_id, Doing, Endpoint, Error, Layer, Layers, Reader, Result, Ros2Message, Sample, Signalled, Stamps,
    Status, View,
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
use crate::stamped::Stamped;

/// What a subscription of any of the types does.
pub(crate) trait Receiving: Send + Source {
    /// `stamps`: of the message, if somebody asked for them; an end of a service has none.
    fn take_one(&self, stamps: Option<&mut Stamps>) -> Result<Option<Ros2Sample>>;
    /// None for an end of a service.
    fn identity(&self) -> Option<GUID> {
        None
    }
}

impl<M: Message> Receiving for Subscription<Stamped<M>> {
    fn take_one(&self, stamps: Option<&mut Stamps>) -> Result<Option<Ros2Sample>> {
        let Some(stamps) = stamps else {
            return Ok(self.take().doing("taking")?.map(|(message, about)| {
                Ros2Sample::of(message.0.into_places(), about.sequence_number().unsigned_abs())
            }));
        };
        let (taken, deserialised) = stamps.around(Layer::Take, Layer::Deserialise, || self.take());
        stamps.set_inner(Layer::Deserialise, deserialised);
        Ok(taken.doing("taking")?.map(|(message, about)| {
            let sequence = about.sequence_number().unsigned_abs();
            stamps.set_key(writer_id(&about.publisher_gid().to_bytes16()), sequence);
            Ros2Sample::of(message.0.into_places(), sequence)
        }))
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
    stamps: Option<Stamps>,
}

fn made<M: Message>(nodes: &Nodes, participant: &Participant, wanted: &Wanted) -> Result<Box<dyn Receiving>> {
    nodes.make(participant, wanted, |node, topic| {
        let subscription = node.create_subscription::<Stamped<M>>(topic, Some(wanted.profile.clone()));
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
            stamps: None,
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
        if let Some(stamps) = &mut self.stamps {
            stamps.begin();
        }
        let taken = reader.take_one(self.stamps.as_mut())?;
        self.told.set_untaken(taken.is_some());
        Ok(taken)
    }

    const STAMPED: Layers = Layers::of(&[Layer::Take, Layer::Deserialise]);
    fn ask_for_stamps(&mut self, layers: Layers) {
        self.stamps = (!layers.is_empty()).then(|| Stamps::new(layers));
    }
    fn stamps(&self) -> Option<&Stamps> {
        self.stamps.as_ref()
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

/// The payload of a taken message.
pub(crate) struct Ros2Sample {
    places: Places,
    /// The publisher's number for it; 0 for an end of a service.
    sequence: u64,
    /// What a reply must refer to, if it is a request.
    request: Option<RmwRequestId>,
}

impl Ros2Sample {
    fn of(places: Places, sequence: u64) -> Self {
        Self { places, sequence, request: None }
    }

    /// What an end of a service received.
    pub(crate) fn of_service(places: Places, request: Option<RmwRequestId>) -> Self {
        Self { places, sequence: 0, request }
    }

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
            sequence: self.sequence,
            signalled: Signalled::default(),
        }
    }
}
