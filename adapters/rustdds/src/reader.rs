// SPDX-License-Identifier: Apache-2.0
//! Readers: RustDDS's data reader, which converts each sample to an object when it is taken.
use std::collections::VecDeque;
use std::sync::Arc;

use lagometer_adapter::{
    writer_id, Doing, Endpoint, Layer, Layers, Reader, Result, Ros2Message, Sample, Signalled, Stamps,
    Status, View,
};
use lagometer_rustdds_common::message::{Image, Imu, PointCloud2, Text};
use lagometer_rustdds_common::{refuse_listener, Awaited, Facts, Told};
use rustdds::dds::ReadResult;
use rustdds::mio1::event::Source;
use rustdds::no_key::{DataReader, DataSample};
use rustdds::{QosPolicies, RTPSEntity, ReadCondition, Subscriber, Topic, GUID};

use crate::context::{RustDdsContext, Wanted};
use crate::quality;
use crate::wire::{Array, AsMessage, Form, Incoming, Reading, Receiving, Sequence, SequenceBySerde};

/// What a reader of any form does.
trait Taking: Send + Source {
    fn take_most(&mut self, most: usize) -> ReadResult<Vec<DataSample<Incoming>>>;
    fn identity(&self) -> GUID;
}

impl<R: Reading> Taking for DataReader<Incoming, Receiving<R>> {
    fn take_most(&mut self, most: usize) -> ReadResult<Vec<DataSample<Incoming>>> {
        self.take(most, ReadCondition::not_read())
    }
    fn identity(&self) -> GUID {
        self.guid()
    }
}

/// A data reader.
pub(crate) struct RustDdsReader {
    reader: Option<Box<dyn Taking>>,
    /// Taken from RustDDS but not from this reader yet.
    ready: VecDeque<DataSample<Incoming>>,
    wanted: Wanted,
    form: Form,
    told: Told,
    facts: Arc<Facts>,
    /// For the call that took the samples in `ready`; the key, and when it was deserialised, are those of the
    /// message taken last.
    stamps: Option<Stamps>,
}

impl RustDdsReader {
    pub(crate) fn new(context: &RustDdsContext, endpoint: &Endpoint) -> Result<Self> {
        refuse_listener(endpoint)?;
        let wanted = Wanted::new(context, endpoint)?;
        let facts = Facts::of_reader(context.participant(), quality::describe(&wanted.qos));
        Ok(Self {
            reader: None,
            ready: VecDeque::new(),
            form: Form::of(endpoint.payload, context.settings().bulk_serialization),
            wanted,
            told: Told::default(),
            facts: Arc::new(facts),
            stamps: None,
        })
    }
}

impl Awaited for RustDdsReader {
    fn told(&mut self) -> &mut Told {
        &mut self.told
    }
}

fn made<R: Reading>(subscriber: &Subscriber, topic: &Topic, qos: &QosPolicies) -> Result<Box<dyn Taking>> {
    let reader = subscriber.create_datareader_no_key::<Incoming, Receiving<R>>(topic, Some(qos.clone()));
    Ok(Box::new(reader.doing("making a reader")?))
}

impl Reader for RustDdsReader {
    type Sample = RustDdsSample;

    fn enable(&mut self) -> Result<()> {
        let Wanted { topic, type_name, qos } = &self.wanted;
        let participant = self.facts.participant()?;
        let subscriber = participant
            .domain_participant()
            .create_subscriber(qos)
            .doing(format!("making a subscriber for '{topic}'"))?;
        let topic = participant.topic(topic, type_name, qos)?;
        let mut reader = match self.form {
            Form::Sequence => made::<Sequence>(&subscriber, &topic, qos)?,
            Form::SequenceBySerde => made::<SequenceBySerde>(&subscriber, &topic, qos)?,
            Form::Array => made::<Array>(&subscriber, &topic, qos)?,
            Form::Message(Ros2Message::String) => made::<AsMessage<Text>>(&subscriber, &topic, qos)?,
            Form::Message(Ros2Message::Image) => made::<AsMessage<Image>>(&subscriber, &topic, qos)?,
            Form::Message(Ros2Message::Imu) => made::<AsMessage<Imu>>(&subscriber, &topic, qos)?,
            Form::Message(Ros2Message::PointCloud2) => {
                made::<AsMessage<PointCloud2>>(&subscriber, &topic, qos)?
            }
        };
        self.told.enable(reader.as_mut())?;
        self.facts.enabled_as(reader.identity());
        self.reader = Some(reader);
        Ok(())
    }

    fn prepare(&mut self, most: usize) -> Result<()> {
        let Some(reader) = self.reader.as_mut().filter(|_| self.ready.is_empty()) else { return Ok(()) };
        self.told.set_untaken(false);
        let mut take = || reader.take_most(most);
        let taken = match &mut self.stamps {
            None => take(),
            Some(stamps) => {
                stamps.begin();
                stamps.around(Layer::Take, Layer::Deserialise, take).0
            }
        }
        .doing("taking")?;
        self.told.set_untaken(taken.len() >= most);
        self.ready.extend(taken);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<RustDdsSample>> {
        let Some(sample) = self.ready.pop_front() else { return Ok(None) };
        if let Some(stamps) = &mut self.stamps {
            let identity = sample.sample_info().sample_identity();
            stamps.set_key(writer_id(&identity.writer_guid.to_bytes()), sequence_of(&sample));
            stamps.set_inner(Layer::Deserialise, sample.value().deserialised);
        }
        Ok(Some(RustDdsSample(sample)))
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

fn sequence_of(sample: &DataSample<Incoming>) -> u64 {
    i64::from(sample.sample_info().sample_identity().sequence_number).unsigned_abs()
}

/// A taken sample.
pub(crate) struct RustDdsSample(DataSample<Incoming>);

impl Sample for RustDdsSample {
    fn view(&self) -> View<'_> {
        let payload = &self.0.value().places;
        View {
            regions: [&payload.first, &payload.second, &[], &[]],
            loaned: false,
            sequence: sequence_of(&self.0),
            signalled: Signalled::default(),
        }
    }
}
