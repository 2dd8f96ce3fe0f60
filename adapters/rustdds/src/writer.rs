// SPDX-License-Identifier: Apache-2.0
//! Writers: RustDDS copies a message into its own queue when it is written, and a thread of its own sends it.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{
    Counters, Description, Doing, Endpoint, Error, Loan, Matched, Memory, Origin, Result, Sent, Status,
    Writer,
};
use rustdds::dds::WriteError;
use rustdds::no_key::DataWriter;
use rustdds::{QosPolicies, RTPSEntity, GUID};

use crate::context::{matched, Participant, RustDdsContext, SharedParticipant, Wanted};
use crate::payload::{Form, Outgoing, Sending};
use crate::quality;

/// A data writer.
pub(crate) struct RustDdsWriter {
    writer: Option<DataWriter<Outgoing, Sending>>,
    wanted: Wanted,
    form: Form,
    bytes_max: usize,
    /// Those that no message is written to at the moment.
    buffers: Vec<Arc<Vec<u8>>>,
    facts: Arc<WriterStatus>,
}

struct WriterStatus {
    participant: SharedParticipant,
    guid: OnceLock<GUID>,
    qos: QosPolicies,
    rejected: AtomicU64,
}

impl RustDdsWriter {
    pub(crate) fn new(context: &RustDdsContext, endpoint: &Endpoint) -> Result<Self> {
        let wanted = Wanted::new(context, endpoint)?;
        let facts = WriterStatus {
            participant: context.participant(),
            guid: OnceLock::new(),
            qos: wanted.qos.clone(),
            rejected: AtomicU64::new(0),
        };
        Ok(Self {
            writer: None,
            form: Form::of(endpoint.payload, context.settings().bulk_serialization),
            bytes_max: endpoint.payload.bytes_max,
            buffers: vec![Arc::new(vec![0; endpoint.payload.bytes_max])],
            wanted,
            facts: Arc::new(facts),
        })
    }
}

impl Writer for RustDdsWriter {
    type Loan = RustDdsLoan;

    fn enable(&mut self) -> Result<()> {
        let Wanted { topic, type_name, qos } = &self.wanted;
        let participant = Participant::of(&self.facts.participant)?;
        let doing = format!("making a writer on '{topic}'");
        let publisher = participant.domain_participant().create_publisher(qos).doing(&doing)?;
        let made = participant.topic(topic, type_name, qos)?;
        let writer = publisher
            .create_datawriter_no_key::<Outgoing, Sending>(&made, Some(qos.clone()))
            .doing(&doing)?;
        let _ = self.facts.guid.set(writer.guid());
        self.writer = Some(writer);
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<RustDdsLoan>> {
        let buffer = self.buffers.pop().unwrap_or_else(|| Arc::new(vec![0; self.bytes_max]));
        Ok(Some(RustDdsLoan { buffer, bytes }))
    }

    fn commit(&mut self, loan: RustDdsLoan) -> Result<Sent> {
        let writer = self.writer.as_ref().ok_or_else(|| Error::invalid("commit before enable"))?;
        let RustDdsLoan { buffer, bytes } = loan;
        // It is serialised before this returns, and with that the buffer is free again.
        let written = writer.write(Outgoing { buffer: buffer.clone(), bytes, form: self.form }, None);
        let sent = match written {
            Ok(()) => Sent::Accepted,
            Err(WriteError::WouldBlock { .. }) => {
                self.facts.rejected.fetch_add(1, Ordering::Relaxed);
                Sent::Rejected
            }
            Err(error) => return Err(error.forget_data()).doing("writing"),
        };
        self.buffers.push(buffer);
        Ok(sent)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

impl Drop for RustDdsWriter {
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
        quality::describe(&self.qos)
    }
}

/// A buffer that a message is written to, and how much of it the message takes.
pub(crate) struct RustDdsLoan {
    buffer: Arc<Vec<u8>>,
    bytes: usize,
}

impl Loan for RustDdsLoan {
    fn origin(&self) -> Origin {
        Origin::Copied
    }
    fn memory(&mut self) -> Memory<'_> {
        let buffer = Arc::get_mut(&mut self.buffer).expect("a free buffer has one owner");
        (&mut buffer[..self.bytes]).into()
    }
}
