// SPDX-License-Identifier: Apache-2.0
//! Writers: a publisher serialises a message when it is published, and passes it to Zenoh. Or the sending end
//! of a service.
use std::sync::Arc;

use hiroz::entity::EndpointKind;
use hiroz::msg::NativeCdrSerdes;
use hiroz::pubsub::ZPub;
use hiroz::Builder;
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{Doing, Endpoint, Error, Result, Ros2Message, Sent, Status, Writer};

use crate::context::{Facts, HirozContext, Opened, SharedSession, Wanted};
use crate::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use crate::services::{Ends, Reply};

/// What a publisher of any of the types does.
pub(crate) trait Sending: Send {
    fn send(&mut self, places: Places) -> Result<()>;
    /// The next message answers this request.
    fn answer(&mut self, _request: Reply) -> Result<()> {
        Err(Error::invalid("only a server's writer can answer"))
    }
}

impl<M: Message> Sending for ZPub<M, NativeCdrSerdes<M>> {
    fn send(&mut self, places: Places) -> Result<()> {
        self.publish(&M::of(places)?).doing("publishing")
    }
}

/// A publisher.
pub(crate) struct HirozWriter {
    writer: Option<Box<dyn Sending>>,
    service: Option<Arc<Ends>>,
    wanted: Wanted,
    session: SharedSession,
    facts: Arc<Facts>,
}

fn made<M: Message>(opened: &Opened, wanted: &Wanted) -> Result<Box<dyn Sending>> {
    opened.make(&wanted.node, |node| {
        let publisher = node.create_pub::<M>(&wanted.topic).with_qos(wanted.profile).build();
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
        Self { writer: None, service, wanted, session, facts }
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
        self.writer = Some(match wanted.payload.message {
            None => made::<Bytes>(opened, wanted)?,
            Some(Ros2Message::String) => made::<Text>(opened, wanted)?,
            Some(Ros2Message::Image) => made::<Image>(opened, wanted)?,
            Some(Ros2Message::Imu) => made::<Imu>(opened, wanted)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(opened, wanted)?,
        });
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<Places>> {
        Ok(Some(Places::new(self.wanted.payload, bytes)))
    }

    fn commit(&mut self, loan: Places) -> Result<Sent> {
        let writer = self.writer.as_mut().ok_or_else(|| Error::invalid("commit before enable"))?;
        writer.send(loan).map(|()| Sent::Accepted)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}
