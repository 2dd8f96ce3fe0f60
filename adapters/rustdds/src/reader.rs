// SPDX-License-Identifier: Apache-2.0
//! Readers: RustDDS's data reader, which makes an object of each sample when it is taken.
use std::collections::VecDeque;
use std::sync::Arc;

use lagometer_adapter::ros2::Places;
use lagometer_adapter::{Doing, Endpoint, Reader, Result, Ros2Message, Sample, Signalled, Status, View};
use lagometer_rustdds_common::message::{Image, Imu, PointCloud2, Text};
use lagometer_rustdds_common::{refuse_listener, Awaited, Facts, Told};
use rustdds::dds::ReadResult;
use rustdds::mio1::event::Source;
use rustdds::no_key::{DataReader, DataSample};
use rustdds::{QosPolicies, RTPSEntity, ReadCondition, Subscriber, Topic, GUID};

use crate::context::{RustDdsContext, Wanted};
use crate::quality;
use crate::wire::{Array, AsMessage, Form, Reading, Receiving, Sequence, SequenceBySerde};

/// What a reader of any form does.
trait Taking: Send + Source {
    fn take_most(&mut self, most: usize) -> ReadResult<Vec<DataSample<Places>>>;
    fn identity(&self) -> GUID;
}

impl<R: Reading> Taking for DataReader<Places, Receiving<R>> {
    fn take_most(&mut self, most: usize) -> ReadResult<Vec<DataSample<Places>>> {
        self.take(most, ReadCondition::not_read())
    }
    fn identity(&self) -> GUID {
        self.guid()
    }
}

/// A data reader.
pub(crate) struct RustDdsReader {
    reader: Option<Box<dyn Taking>>,
    /// Taken from RustDDS, and about to be.
    ready: VecDeque<DataSample<Places>>,
    wanted: Wanted,
    form: Form,
    told: Told,
    facts: Arc<Facts>,
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
        })
    }
}

impl Awaited for RustDdsReader {
    fn told(&mut self) -> &mut Told {
        &mut self.told
    }
}

fn made<R: Reading>(subscriber: &Subscriber, topic: &Topic, qos: &QosPolicies) -> Result<Box<dyn Taking>> {
    let reader = subscriber.create_datareader_no_key::<Places, Receiving<R>>(topic, Some(qos.clone()));
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
        let taken = reader.take_most(most).doing("taking")?;
        self.told.set_untaken(taken.len() >= most);
        self.ready.extend(taken);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<RustDdsSample>> {
        Ok(self.ready.pop_front().map(RustDdsSample))
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

/// A sample that was taken.
pub(crate) struct RustDdsSample(DataSample<Places>);

impl Sample for RustDdsSample {
    fn view(&self) -> View<'_> {
        let payload = self.0.value();
        View {
            regions: [&payload.first, &payload.second, &[], &[]],
            loaned: false,
            sequence: i64::from(self.0.sample_info().sample_identity().sequence_number).unsigned_abs(),
            signalled: Signalled::default(),
        }
    }
}
