// SPDX-License-Identifier: Apache-2.0
//! Writers: a publisher serialises a message when it is published, and hands it to Zenoh.
use std::sync::Arc;

use hiroz::entity::EndpointKind;
use hiroz::msg::NativeCdrSerdes;
use hiroz::pubsub::ZPub;
use hiroz::Builder;
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    Doing, Endpoint, Error, Loan, Memory, Origin, Result, Ros2Message, Sent, Status, Writer,
};

use crate::context::{Facts, HirozContext, Opened, SharedSession, Wanted};
use crate::message::{Bytes, Image, Imu, Message, PointCloud2, Text};

/// What a publisher of any of the types does.
trait Sending: Send {
    fn send(&self, places: Places) -> Result<()>;
}

impl<M: Message> Sending for ZPub<M, NativeCdrSerdes<M>> {
    fn send(&self, places: Places) -> Result<()> {
        self.publish(&M::of(places)?).doing("publishing")
    }
}

/// A publisher.
pub(crate) struct HirozWriter {
    writer: Option<Box<dyn Sending>>,
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
        let (wanted, session) = (Wanted::new(endpoint), context.session());
        let facts = Arc::new(Facts::new(session.clone(), &wanted, EndpointKind::Subscription));
        Self { writer: None, wanted, session, facts }
    }
}

impl Writer for HirozWriter {
    type Loan = HirozLoan;

    fn enable(&mut self) -> Result<()> {
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

    fn borrow(&mut self, bytes: usize) -> Result<Option<HirozLoan>> {
        Ok(Some(HirozLoan(Places::new(self.wanted.payload, bytes))))
    }

    fn commit(&mut self, loan: HirozLoan) -> Result<Sent> {
        let writer = self.writer.as_ref().ok_or_else(|| Error::invalid("commit before enable"))?;
        writer.send(loan.0).map(|()| Sent::Accepted)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

/// What a message will be made of.
pub(crate) struct HirozLoan(Places);

impl Loan for HirozLoan {
    fn origin(&self) -> Origin {
        Origin::Copied
    }
    fn memory(&mut self) -> Memory<'_> {
        self.0.first.as_mut_slice().into()
    }
    fn memory_behind(&mut self) -> Option<Memory<'_>> {
        (!self.0.second.is_empty()).then(|| self.0.second.as_mut_slice().into())
    }
}
