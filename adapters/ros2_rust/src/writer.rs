// SPDX-License-Identifier: Apache-2.0
//! Writers: a publisher serialises a message when it is published, and one of RustDDS's threads sends it.
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{Doing, Endpoint, Error, PayloadType, Result, Ros2Message, Sent, Status, Writer};
use lagometer_rustdds_common::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use lagometer_rustdds_common::{Facts, Participant};
use ros2_client::qos::QosProfile;
use ros2_client::service::RmwRequestId;
use ros2_client::{Publisher, WriteError};
use rustdds::GUID;

use crate::context::{Nodes, Ros2Context, SharedNodes, Wanted};
use crate::quality;
use crate::services::Ends;

/// What a publisher of any of the types does.
pub(crate) trait Sending: Send {
    fn send(&self, places: Places) -> Result<Sent>;
    /// The next message answers this request.
    fn answer(&self, _request: RmwRequestId) -> Result<()> {
        Err(Error::invalid("only a server's writer can answer"))
    }
    /// None for an end of a service.
    fn identity(&self) -> Option<GUID> {
        None
    }
}

impl<M: Message> Sending for Publisher<M> {
    fn send(&self, places: Places) -> Result<Sent> {
        match self.publish(M::of(places)?) {
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
}

fn made<M: Message>(nodes: &Nodes, participant: &Participant, wanted: &Wanted) -> Result<Box<dyn Sending>> {
    nodes.make(participant, wanted, |node, topic| {
        let publisher = node.create_publisher::<M>(topic, Some(wanted.profile.clone()));
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
        let sent = writer.send(loan)?;
        if sent == Sent::Rejected {
            self.facts.note_rejected();
        }
        Ok(sent)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}
