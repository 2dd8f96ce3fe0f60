// SPDX-License-Identifier: Apache-2.0
//! Writers: a publisher serialises a message when it is published, and one of RustDDS's threads sends it.
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    writer_id, Doing, Endpoint, Error, Layer, Layers, PayloadType, Result, Ros2Message, Sent, Stamps, Status,
    Writer,
};
use lagometer_rustdds_common::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use lagometer_rustdds_common::{Facts, Participant};
use ros2_client::qos::QosProfile;
use ros2_client::service::RmwRequestId;
use ros2_client::{Publisher, WriteError};
use rustdds::GUID;

use crate::context::{Nodes, Ros2Context, SharedNodes, Wanted};
use crate::quality;
use crate::services::Ends;
use crate::stamped::Stamped;

/// What a publisher of any of the types does.
pub(crate) trait Sending: Send {
    /// `stamps`: of this message, if somebody asked for them; an end of a service has none.
    fn send(&self, places: Places, stamps: Option<&mut Stamps>) -> Result<Sent>;
    /// The next message answers this request.
    fn answer(&self, _request: RmwRequestId) -> Result<()> {
        Err(Error::invalid("only a server's writer can answer"))
    }
    /// None for an end of a service.
    fn identity(&self) -> Option<GUID> {
        None
    }
}

impl<M: Message> Sending for Publisher<Stamped<M>> {
    #[allow(clippy::result_large_err)] // ros2-client returns in it what could not be published
    fn send(&self, places: Places, stamps: Option<&mut Stamps>) -> Result<Sent> {
        let message = Stamped(M::of(places)?);
        let publish = || self.publish(message);
        let published = match stamps {
            None => publish(),
            Some(stamps) => {
                let (published, serialised) = stamps.around(Layer::Write, Layer::Serialise, publish);
                stamps.set_inner(Layer::Serialise, serialised);
                published
            }
        };
        match published {
            Ok(()) => Ok(Sent::Accepted),
            Err(WriteError::WouldBlock { .. }) => Ok(Sent::Rejected),
            Err(error) => Err(error.forget_data()).doing("publishing"),
        }
    }
    fn identity(&self) -> Option<GUID> {
        Some(self.guid())
    }
}

/// A publisher.
pub(crate) struct Ros2Writer {
    writer: Option<Box<dyn Sending>>,
    service: Option<Arc<Ends>>,
    wanted: Wanted,
    payload: PayloadType,
    nodes: SharedNodes,
    facts: Arc<Facts>,
    stamps: Option<Stamps>,
    /// The publisher's number, and how many messages it accepted: their RTPS sequence numbers count from 1,
    /// and `publish` does not return them.
    id: u64,
    accepted: u64,
}

fn made<M: Message>(nodes: &Nodes, participant: &Participant, wanted: &Wanted) -> Result<Box<dyn Sending>> {
    nodes.make(participant, wanted, |node, topic| {
        let publisher = node.create_publisher::<Stamped<M>>(topic, Some(wanted.profile.clone()));
        Ok(Box::new(publisher.doing(format!("making a publisher on '{}'", wanted.topic))?)
            as Box<dyn Sending>)
    })
}

impl Ros2Writer {
    pub(crate) fn new(context: &Ros2Context, endpoint: &Endpoint) -> Result<Self> {
        let wanted = Wanted::new(endpoint, QosProfile::publisher_default())?;
        let description = quality::describe(&wanted.profile, &QosProfile::publisher_default());
        Ok(Self {
            writer: None,
            service: None,
            wanted,
            payload: endpoint.payload,
            nodes: context.nodes(),
            facts: Arc::new(Facts::of_writer(context.participant(), description)),
            stamps: None,
            id: 0,
            accepted: 0,
        })
    }

    /// An end of a service.
    pub(crate) fn of(mut self, service: Arc<Ends>) -> Self {
        self.service = Some(service);
        self
    }

    /// The next committed message answers this request.
    pub(crate) fn answer(&self, request: RmwRequestId) -> Result<()> {
        self.writer.as_ref().ok_or_else(|| Error::invalid("answer() before enable"))?.answer(request)
    }

    fn publisher(&self) -> Result<Box<dyn Sending>> {
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

impl Writer for Ros2Writer {
    type Loan = Places;

    fn enable(&mut self) -> Result<()> {
        let writer = match &self.service {
            Some(ends) => ends.sending()?,
            None => self.publisher()?,
        };
        if let Some(guid) = writer.identity() {
            self.id = writer_id(&guid.to_bytes());
            self.facts.enabled_as(guid);
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<Places>> {
        Ok(Some(Places::new(self.payload, bytes)))
    }

    fn commit(&mut self, loan: Places) -> Result<Sent> {
        let writer = self.writer.as_ref().ok_or_else(|| Error::invalid("commit before enable"))?;
        if let Some(stamps) = &mut self.stamps {
            stamps.begin();
        }
        let sent = writer.send(loan, self.stamps.as_mut())?;
        match sent {
            Sent::Rejected => self.facts.note_rejected(),
            Sent::Accepted => {
                self.accepted += 1;
                if let Some(stamps) = self.stamps.as_mut().filter(|_| self.id != 0) {
                    stamps.set_key(self.id, self.accepted);
                }
            }
        }
        Ok(sent)
    }

    const STAMPED: Layers = Layers::of(&[Layer::Serialise, Layer::Write]);
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
