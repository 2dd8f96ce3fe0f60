// SPDX-License-Identifier: Apache-2.0
//! Writers: a publisher serialises a message when it is published, and a thread of RustDDS's sends it.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{
    Counters, Description, Doing, Endpoint, Error, Loan, Matched, Memory, Origin, PayloadType, Result,
    Ros2Message, Sent, Status, Writer,
};
use ros2_client::qos::QosProfile;
use ros2_client::{Publisher, WriteError};
use rustdds::GUID;

use crate::context::{matched, Participant, Ros2Context, SharedParticipant, Wanted};
use crate::message::{Bytes, Image, Imu, PointCloud2, Text};
use crate::payload::{Message, Places};
use crate::quality;

/// What a publisher of any of the types does.
trait Sending: Send {
    fn send(&self, places: Places) -> Result<Sent>;
    fn identity(&self) -> GUID;
}

impl<M: Message> Sending for Publisher<M> {
    fn send(&self, places: Places) -> Result<Sent> {
        match self.publish(M::of(places)?) {
            Ok(()) => Ok(Sent::Accepted),
            Err(WriteError::WouldBlock { .. }) => Ok(Sent::Rejected),
            Err(error) => Err(error.forget_data()).doing("publishing"),
        }
    }
    fn identity(&self) -> GUID {
        self.guid()
    }
}

/// A publisher.
pub(crate) struct Ros2Writer {
    writer: Option<Box<dyn Sending>>,
    wanted: Wanted,
    payload: PayloadType,
    facts: Arc<WriterStatus>,
}

struct WriterStatus {
    participant: SharedParticipant,
    guid: OnceLock<GUID>,
    profile: QosProfile,
    rejected: AtomicU64,
}

fn made<M: Message>(participant: &Participant, wanted: &Wanted) -> Result<Box<dyn Sending>> {
    participant.make(wanted, |node, topic| {
        let publisher = node.create_publisher::<M>(topic, Some(wanted.profile.clone()));
        Ok(Box::new(publisher.doing(format!("making a publisher on '{}'", wanted.topic))?)
            as Box<dyn Sending>)
    })
}

impl Ros2Writer {
    pub(crate) fn new(context: &Ros2Context, endpoint: &Endpoint) -> Result<Self> {
        let wanted = Wanted::new(endpoint, QosProfile::publisher_default())?;
        let facts = WriterStatus {
            participant: context.participant(),
            guid: OnceLock::new(),
            profile: wanted.profile.clone(),
            rejected: AtomicU64::new(0),
        };
        Ok(Self { writer: None, wanted, payload: endpoint.payload, facts: Arc::new(facts) })
    }
}

impl Writer for Ros2Writer {
    type Loan = Ros2Loan;

    fn enable(&mut self) -> Result<()> {
        let participant = Participant::of(&self.facts.participant)?;
        let writer = match self.wanted.message {
            None => made::<Bytes>(participant, &self.wanted)?,
            Some(Ros2Message::String) => made::<Text>(participant, &self.wanted)?,
            Some(Ros2Message::Image) => made::<Image>(participant, &self.wanted)?,
            Some(Ros2Message::Imu) => made::<Imu>(participant, &self.wanted)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(participant, &self.wanted)?,
        };
        let _ = self.facts.guid.set(writer.identity());
        self.writer = Some(writer);
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<Ros2Loan>> {
        Ok(Some(Ros2Loan(Places::new(self.payload, bytes))))
    }

    fn commit(&mut self, loan: Ros2Loan) -> Result<Sent> {
        let writer = self.writer.as_ref().ok_or_else(|| Error::invalid("commit before enable"))?;
        let sent = writer.send(loan.0)?;
        if sent == Sent::Rejected {
            self.facts.rejected.fetch_add(1, Ordering::Relaxed);
        }
        Ok(sent)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

impl Drop for Ros2Writer {
    fn drop(&mut self) {
        self.writer = None;
        if let (Some(participant), Some(guid)) = (self.facts.participant.get(), self.facts.guid.get()) {
            participant.acquaintances().forget(*guid);
        }
    }
}

impl Status for WriterStatus {
    fn matched(&self) -> Matched {
        matched(&self.participant, self.guid.get().copied())
    }
    fn counters(&self) -> Counters {
        Counters { rejected: Some(self.rejected.load(Ordering::Relaxed)), ..Counters::default() }
    }
    fn describe(&self) -> Description {
        quality::describe(&self.profile, &QosProfile::publisher_default())
    }
}

/// What a message will be made of.
pub(crate) struct Ros2Loan(Places);

impl Loan for Ros2Loan {
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
