// SPDX-License-Identifier: Apache-2.0
//! Writers: RustDDS copies a written message into its own queue, and one of its threads sends it.
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    writer_id, Doing, Endpoint, Error, Layer, Layers, Loan, Memory, Origin, PayloadType, Result, Sent,
    Stamps, Status, Writer,
};
use lagometer_rustdds_common::Facts;
use rustdds::dds::WriteError;
use rustdds::no_key::DataWriter;
use rustdds::RTPSEntity;
use rustdds::WriteOptions;

use crate::context::{RustDdsContext, Wanted};
use crate::quality;
use crate::wire::{Form, Outgoing, Sending};

/// A data writer.
pub(crate) struct RustDdsWriter {
    writer: Option<DataWriter<Outgoing, Sending>>,
    wanted: Wanted,
    form: Form,
    payload: PayloadType,
    /// The buffers that no message is being written to.
    buffers: Vec<Arc<Vec<u8>>>,
    facts: Arc<Facts>,
    stamps: Option<Stamps>,
}

impl RustDdsWriter {
    pub(crate) fn new(context: &RustDdsContext, endpoint: &Endpoint) -> Result<Self> {
        let wanted = Wanted::new(context, endpoint)?;
        let facts = Facts::of_writer(context.participant(), quality::describe(&wanted.qos));
        Ok(Self {
            writer: None,
            form: Form::of(endpoint.payload, context.settings().bulk_serialization),
            payload: endpoint.payload,
            buffers: if endpoint.payload.message.is_some() {
                Vec::new()
            } else {
                vec![Arc::new(vec![0; endpoint.payload.bytes_max])]
            },
            wanted,
            facts: Arc::new(facts),
            stamps: None,
        })
    }
}

impl Writer for RustDdsWriter {
    type Loan = RustDdsLoan;

    fn enable(&mut self) -> Result<()> {
        let Wanted { topic, type_name, qos } = &self.wanted;
        let participant = self.facts.participant()?;
        let doing = format!("making a writer on '{topic}'");
        let publisher = participant.domain_participant().create_publisher(qos).doing(&doing)?;
        let made = participant.topic(topic, type_name, qos)?;
        let writer = publisher
            .create_datawriter_no_key::<Outgoing, Sending>(&made, Some(qos.clone()))
            .doing(&doing)?;
        self.facts.enabled_as(writer.guid());
        self.writer = Some(writer);
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<RustDdsLoan>> {
        if matches!(self.form, Form::Message(_)) {
            return Ok(Some(RustDdsLoan::Message(Places::new(self.payload, bytes))));
        }
        let buffer = self.buffers.pop().unwrap_or_else(|| Arc::new(vec![0; self.payload.bytes_max]));
        Ok(Some(RustDdsLoan::Octets { buffer, bytes }))
    }

    #[allow(clippy::result_large_err)] // RustDDS returns in it what could not be written
    fn commit(&mut self, loan: RustDdsLoan) -> Result<Sent> {
        let writer = self.writer.as_ref().ok_or_else(|| Error::invalid("commit before enable"))?;
        let (message, buffer) = match (loan, self.form) {
            (RustDdsLoan::Message(places), Form::Message(message)) => {
                (Outgoing::message(message, places)?, None)
            }
            (RustDdsLoan::Octets { buffer, bytes }, form) => {
                (Outgoing::Octets { buffer: buffer.clone(), bytes, form }, Some(buffer))
            }
            (RustDdsLoan::Message(_), _) => return Err(Error::invalid("a loan of another writer")),
        };
        // It is serialised before this returns, so the buffer is free again.
        let send = || writer.write_with_options(message, WriteOptions::default());
        let written = match &mut self.stamps {
            None => send(),
            Some(stamps) => {
                stamps.begin();
                let (written, serialised) = stamps.around(Layer::Write, Layer::Serialise, send);
                stamps.set_inner(Layer::Serialise, serialised);
                written
            }
        };
        let sent = match written {
            Ok(identity) => {
                if let Some(stamps) = &mut self.stamps {
                    let sequence = i64::from(identity.sequence_number).unsigned_abs();
                    stamps.set_key(writer_id(&identity.writer_guid.to_bytes()), sequence);
                }
                Sent::Accepted
            }
            Err(WriteError::WouldBlock { .. }) => {
                self.facts.note_rejected();
                Sent::Rejected
            }
            Err(error) => return Err(error.forget_data()).doing("writing"),
        };
        self.buffers.extend(buffer);
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

/// The memory that a message is written to.
pub(crate) enum RustDdsLoan {
    /// A buffer, and how much of it the message uses.
    Octets { buffer: Arc<Vec<u8>>, bytes: usize },
    /// The payload of a ROS 2 message.
    Message(Places),
}

impl Loan for RustDdsLoan {
    fn origin(&self) -> Origin {
        Origin::Copied
    }
    fn memory(&mut self) -> Memory<'_> {
        match self {
            Self::Octets { buffer, bytes } => {
                let buffer = Arc::get_mut(buffer).expect("a free buffer has one owner");
                (&mut buffer[..*bytes]).into()
            }
            Self::Message(places) => places.first.as_mut_slice().into(),
        }
    }
    fn memory_behind(&mut self) -> Option<Memory<'_>> {
        match self {
            Self::Message(places) if !places.second.is_empty() => Some(places.second.as_mut_slice().into()),
            _ => None,
        }
    }
}
