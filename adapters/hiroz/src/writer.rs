// SPDX-License-Identifier: Apache-2.0
//! Writers: a publisher serialises a message when it is published, and passes it to Zenoh. Or the sending end
//! of a service.
use std::sync::Arc;

use hiroz::entity::{endpoint_gid, EndpointKind};
use hiroz::pubsub::ZPub;
use hiroz::Builder;
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    writer_id, Doing, Endpoint, Error, Layer, Layers, Result, Ros2Message, Sent, Stamps, Status, Writer,
};

use crate::context::{Facts, HirozContext, Opened, SharedSession, Wanted};
use crate::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use crate::services::{Ends, Reply};
use crate::stamping::Serialising;

/// What a publisher of any of the types does.
pub(crate) trait Sending: Send {
    /// `stamps`: of this message, if somebody asked for them; an end of a service has none.
    fn send(&mut self, places: Places, stamps: Option<&mut Stamps>) -> Result<()>;
    /// The publisher's number, the same in all processes; 0 for an end of a service.
    fn id(&self) -> u64 {
        0
    }
    /// The next message answers this request.
    fn answer(&mut self, _request: Reply) -> Result<()> {
        Err(Error::invalid("only a server's writer can answer"))
    }
}

impl<M: Message> Sending for ZPub<M, Serialising<M>> {
    fn send(&mut self, places: Places, stamps: Option<&mut Stamps>) -> Result<()> {
        let message = M::of(places)?;
        let publish = || self.publish(&message);
        let published = match stamps {
            None => publish(),
            Some(stamps) => {
                let (published, serialised) = stamps.around(Layer::Write, Layer::Serialise, publish);
                stamps.set_inner(Layer::Serialise, serialised);
                published
            }
        };
        published.doing("publishing")
    }
    fn id(&self) -> u64 {
        endpoint_gid(self.entity()).map_or(0, |gid| writer_id(&gid))
    }
}

/// A message's number in its key. The vendor's own, in the attachment, begins with 0, which means none there.
pub(crate) fn number_of(sequence: u64) -> u64 {
    sequence + 1
}

/// A publisher.
pub(crate) struct HirozWriter {
    writer: Option<Box<dyn Sending>>,
    service: Option<Arc<Ends>>,
    wanted: Wanted,
    session: SharedSession,
    facts: Arc<Facts>,
    stamps: Option<Stamps>,
    /// What identifies the publisher, and how many messages it was given: `publish` does not return the
    /// number that it puts into the attachment.
    id: u64,
    published: u64,
}

fn made<M: Message>(opened: &Opened, wanted: &Wanted) -> Result<Box<dyn Sending>> {
    opened.make(&wanted.node, |node| {
        let publisher = node.create_pub::<M>(&wanted.topic).with_qos(wanted.profile);
        let publisher = publisher.with_serdes::<Serialising<M>>().build();
        Ok(Box::new(publisher.doing(format!("making a publisher on '{}'", wanted.topic))?)
            as Box<dyn Sending>)
    })
}

impl HirozWriter {
    pub(crate) fn new(context: &HirozContext, endpoint: &Endpoint) -> Self {
        Self::with(context, endpoint, EndpointKind::Subscription, None)
    }

    /// An end of a service.
    pub(crate) fn of(context: &HirozContext, endpoint: &Endpoint, ends: Arc<Ends>) -> Self {
        Self::with(context, endpoint, ends.counterparts(), Some(ends))
    }

    fn with(
        context: &HirozContext,
        endpoint: &Endpoint,
        counterparts: EndpointKind,
        service: Option<Arc<Ends>>,
    ) -> Self {
        let (wanted, session) = (Wanted::new(endpoint), context.session());
        let facts = Arc::new(Facts::new(session.clone(), &wanted, counterparts));
        Self { writer: None, service, wanted, session, facts, stamps: None, id: 0, published: 0 }
    }

    /// The next committed message answers this request.
    pub(crate) fn answer(&mut self, request: Reply) -> Result<()> {
        self.writer.as_mut().ok_or_else(|| Error::invalid("answer() before enable"))?.answer(request)
    }
}

impl Writer for HirozWriter {
    type Loan = Places;

    fn enable(&mut self) -> Result<()> {
        if let Some(ends) = &self.service {
            self.writer = Some(ends.sending()?);
            return Ok(());
        }
        let (opened, wanted) = (Opened::of(&self.session)?, &self.wanted);
        let writer = match wanted.payload.message {
            None => made::<Bytes>(opened, wanted)?,
            Some(Ros2Message::String) => made::<Text>(opened, wanted)?,
            Some(Ros2Message::Image) => made::<Image>(opened, wanted)?,
            Some(Ros2Message::Imu) => made::<Imu>(opened, wanted)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(opened, wanted)?,
        };
        self.id = writer.id();
        self.writer = Some(writer);
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<Places>> {
        Ok(Some(Places::new(self.wanted.payload, bytes)))
    }

    fn commit(&mut self, loan: Places) -> Result<Sent> {
        let writer = self.writer.as_mut().ok_or_else(|| Error::invalid("commit before enable"))?;
        if let Some(stamps) = &mut self.stamps {
            stamps.begin();
        }
        writer.send(loan, self.stamps.as_mut())?;
        if let Some(stamps) = self.stamps.as_mut().filter(|_| self.id != 0) {
            stamps.set_key(self.id, number_of(self.published));
        }
        self.published += 1;
        Ok(Sent::Accepted)
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
