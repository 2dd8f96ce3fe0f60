// SPDX-License-Identifier: Apache-2.0
//! Readers: RustDDS's data reader, which makes an object of each sample when it is taken.
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{
    Description, Dispatch, Doing, Endpoint, Error, Matched, Reader, Result, Sample, Signalled, Status, View,
};
use rustdds::dds::ReadResult;
use rustdds::mio1::event::Source;
use rustdds::mio1::{Interest, Registry, Token};
use rustdds::no_key::{DataReader, DataSample};
use rustdds::{QosPolicies, RTPSEntity, ReadCondition, Subscriber, Topic, GUID};

use crate::context::{matched, Participant, RustDdsContext, SharedParticipant, Wanted};
use crate::payload::{Array, Form, Reading, Receiving, Sequence, SequenceBySerde};
use crate::quality;
use crate::waitset::{Awaited, Untaken};

/// What a reader of any form does.
trait Taking: Send {
    fn take_most(&mut self, most: usize) -> ReadResult<Vec<DataSample<Vec<u8>>>>;
    fn wake(&mut self, registry: &Registry, token: Token) -> io::Result<()>;
    fn identity(&self) -> GUID;
}

impl<R: Reading> Taking for DataReader<Vec<u8>, Receiving<R>> {
    fn take_most(&mut self, most: usize) -> ReadResult<Vec<DataSample<Vec<u8>>>> {
        self.take(most, ReadCondition::not_read())
    }
    fn wake(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.register(registry, token, Interest::READABLE)
    }
    fn identity(&self) -> GUID {
        self.guid()
    }
}

/// A data reader.
pub(crate) struct RustDdsReader {
    reader: Option<Box<dyn Taking>>,
    /// Taken from RustDDS, and about to be.
    ready: VecDeque<DataSample<Vec<u8>>>,
    wanted: Wanted,
    form: Form,
    untaken: Untaken,
    /// Who is to be told, once it is enabled.
    told: Option<(Registry, Token)>,
    facts: Arc<ReaderStatus>,
}

struct ReaderStatus {
    participant: SharedParticipant,
    guid: OnceLock<GUID>,
    qos: QosPolicies,
}

impl RustDdsReader {
    pub(crate) fn new(context: &RustDdsContext, endpoint: &Endpoint) -> Result<Self> {
        if endpoint.dispatch == Dispatch::Listener {
            let why = "there is no listener: a reader is waited for or polled";
            return Err(Error::unsupported(format!("topic '{}': {why}", endpoint.topic)));
        }
        let wanted = Wanted::new(context, endpoint)?;
        let facts = ReaderStatus {
            participant: context.participant(),
            guid: OnceLock::new(),
            qos: wanted.qos.clone(),
        };
        Ok(Self {
            reader: None,
            ready: VecDeque::new(),
            form: Form::of(endpoint.payload, context.settings().bulk_serialization),
            wanted,
            untaken: Untaken::default(),
            told: None,
            facts: Arc::new(facts),
        })
    }
}

impl Awaited for RustDdsReader {
    fn wait_by(&mut self, registry: Registry, token: Token) -> Result<Untaken> {
        if self.told.is_some() || self.reader.is_some() {
            return Err(Error::invalid("a reader belongs to one waitset, attached before it is enabled"));
        }
        self.told = Some((registry, token));
        Ok(self.untaken.clone())
    }
}

fn made<R: Reading>(subscriber: &Subscriber, topic: &Topic, qos: &QosPolicies) -> Result<Box<dyn Taking>> {
    let reader = subscriber.create_datareader_no_key::<Vec<u8>, Receiving<R>>(topic, Some(qos.clone()));
    Ok(Box::new(reader.doing("making a reader")?))
}

impl Reader for RustDdsReader {
    type Sample = RustDdsSample;

    fn enable(&mut self) -> Result<()> {
        let Wanted { topic, type_name, qos } = &self.wanted;
        let participant = Participant::of(&self.facts.participant)?;
        let subscriber = participant
            .domain_participant()
            .create_subscriber(qos)
            .doing(format!("making a subscriber for '{topic}'"))?;
        let topic = participant.topic(topic, type_name, qos)?;
        let mut reader = match self.form {
            Form::Sequence => made::<Sequence>(&subscriber, &topic, qos)?,
            Form::SequenceBySerde => made::<SequenceBySerde>(&subscriber, &topic, qos)?,
            Form::Array => made::<Array>(&subscriber, &topic, qos)?,
        };
        if let Some((registry, token)) = &self.told {
            reader.wake(registry, *token).doing("registering a reader with a waitset")?;
        }
        let _ = self.facts.guid.set(reader.identity());
        self.reader = Some(reader);
        Ok(())
    }

    fn prepare(&mut self, most: usize) -> Result<()> {
        let Some(reader) = self.reader.as_mut().filter(|_| self.ready.is_empty()) else { return Ok(()) };
        self.untaken.set(false);
        let taken = reader.take_most(most).doing("taking")?;
        self.untaken.set(taken.len() >= most);
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

impl Drop for RustDdsReader {
    fn drop(&mut self) {
        self.reader = None;
        if let (Some(participant), Some(guid)) = (self.facts.participant.get(), self.facts.guid.get()) {
            participant.acquaintances().forget(*guid);
        }
    }
}

impl Status for ReaderStatus {
    fn matched(&self) -> Matched {
        matched(&self.participant, self.guid.get().copied())
    }
    fn describe(&self) -> Description {
        quality::describe(&self.qos)
    }
}

/// A sample that was taken.
pub(crate) struct RustDdsSample(DataSample<Vec<u8>>);

impl Sample for RustDdsSample {
    fn view(&self) -> View<'_> {
        View {
            regions: [self.0.value(), &[], &[], &[]],
            loaned: false,
            sequence: i64::from(self.0.sample_info().sample_identity().sequence_number).unsigned_abs(),
            signalled: Signalled::default(),
        }
    }
}
