// SPDX-License-Identifier: Apache-2.0
//! Writers: a message is moved to Dust DDS, whose own thread serialises, keeps and sends it.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dust_dds::dds_async::data_writer::DataWriterAsync;
use dust_dds::infrastructure::error::{DdsError, DdsResult};
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataWriterQos, QosKind};
use dust_dds::infrastructure::status::NO_STATUS;
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    Counters, Description, Doing, Endpoint, Error, Matched, PayloadType, Result, Sent, Status, Writer,
};

use crate::blocking::block_on;
use crate::context::{DustContext, Participant, SharedParticipant};
use crate::form::{for_form, Form};
use crate::message::Message;
use crate::quality;

/// What a writer of any of the types does.
trait Sending: Send + Sync {
    fn send(&self, places: Places) -> Result<Sent>;
    fn count_matched(&self) -> DdsResult<i32>;
    fn delete(&self) -> DdsResult<()>;
}

impl<M: Message> Sending for DataWriterAsync<M> {
    fn send(&self, places: Places) -> Result<Sent> {
        match block_on(self.write(M::of(places)?, None)) {
            Ok(()) => Ok(Sent::Accepted),
            Err(DdsError::Timeout | DdsError::OutOfResources) => Ok(Sent::Rejected),
            Err(error) => Err(error).doing("writing"),
        }
    }
    fn count_matched(&self) -> DdsResult<i32> {
        Ok(block_on(self.get_publication_matched_status())?.current_count)
    }
    fn delete(&self) -> DdsResult<()> {
        block_on(self.get_publisher().delete_datawriter(self))
    }
}

/// A data writer.
pub(crate) struct DustWriter {
    topic: String,
    form: Form,
    payload: PayloadType,
    facts: Arc<WriterStatus>,
}

struct WriterStatus {
    /// Outlives the writer.
    participant: SharedParticipant,
    writer: OnceLock<Box<dyn Sending>>,
    qos: DataWriterQos,
    rejected: AtomicU64,
}

impl DustWriter {
    pub(crate) fn new(context: &DustContext, endpoint: &Endpoint) -> Result<Self> {
        let facts = WriterStatus {
            participant: context.participant(),
            writer: OnceLock::new(),
            qos: quality::of_writer(endpoint)?,
            rejected: AtomicU64::new(0),
        };
        let form = Form::of(endpoint.payload)?;
        Ok(Self { topic: endpoint.topic.clone(), form, payload: endpoint.payload, facts: Arc::new(facts) })
    }

    fn made<M: Message>(&self) -> Result<Box<dyn Sending>> {
        let participant = Participant::of(&self.facts.participant)?;
        let topic = participant.topic::<M>(&self.topic, self.form)?;
        let qos = QosKind::Specific(self.facts.qos.clone());
        let made = participant.publisher().create_datawriter::<M>(&topic, qos, NO_LISTENER, NO_STATUS);
        Ok(Box::new(block_on(made).doing(format!("making a writer on '{}'", self.topic))?))
    }
}

impl Writer for DustWriter {
    type Loan = Places;

    fn enable(&mut self) -> Result<()> {
        let writer = for_form!(self.form, self.made)?;
        self.facts.writer.set(writer).map_err(|_| Error::invalid("a writer enabled twice"))
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<Places>> {
        Ok(Some(Places::new(self.payload, bytes)))
    }

    fn commit(&mut self, loan: Places) -> Result<Sent> {
        let writer = self.facts.writer.get().ok_or_else(|| Error::invalid("commit before enable"))?;
        let sent = writer.send(loan)?;
        if sent == Sent::Rejected {
            self.facts.rejected.fetch_add(1, Ordering::Relaxed);
        }
        Ok(sent)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

impl Drop for DustWriter {
    fn drop(&mut self) {
        // A writer that can't be deleted ends with its participant.
        let _ = self.facts.writer.get().map(|writer| writer.delete());
    }
}

impl Status for WriterStatus {
    fn matched(&self) -> Matched {
        let count = self.writer.get().and_then(|writer| writer.count_matched().ok());
        Matched::Seen(count.map_or(0, i32::unsigned_abs))
    }
    fn counters(&self) -> Counters {
        Counters { rejected: Some(self.rejected.load(Ordering::Relaxed)), ..Counters::default() }
    }
    fn describe(&self) -> Description {
        quality::describe_writer(&self.qos)
    }
}
