// SPDX-License-Identifier: Apache-2.0
//! Readers: Dust DDS's own thread keeps received samples, and converts them to objects when they are taken.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use dust_dds::dds_async::condition::StatusConditionAsync;
use dust_dds::dds_async::data_reader::DataReaderAsync;
use dust_dds::infrastructure::error::{DdsError, DdsResult};
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, QosKind};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{StatusKind, NO_STATUS};
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{
    Description, Dispatch, Doing, Endpoint, Error, Matched, Reader, Result, Sample, Signalled, Status, View,
};

use crate::blocking::block_on;
use crate::context::{DustContext, Participant, SharedParticipant};
use crate::form::{for_form, Form};
use crate::message::Message;
use crate::quality;

/// What a reader of any of the types does.
trait Receiving: Send + Sync {
    fn take_most(&self, most: i32) -> DdsResult<Vec<Places>>;
    fn data_available(&self) -> DdsResult<StatusConditionAsync>;
    fn count_matched(&self) -> DdsResult<i32>;
    fn delete(&self) -> DdsResult<()>;
}

impl<M: Message> Receiving for DataReaderAsync<M> {
    fn take_most(&self, most: i32) -> DdsResult<Vec<Places>> {
        match block_on(self.take(most, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE)) {
            // A sample without data reports that a writer is gone.
            Ok(samples) => Ok(samples.into_iter().filter_map(|each| each.data).map(M::into_places).collect()),
            Err(DdsError::NoData) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
    fn data_available(&self) -> DdsResult<StatusConditionAsync> {
        let condition = self.get_statuscondition();
        block_on(condition.set_enabled_statuses(&[StatusKind::DataAvailable]))?;
        Ok(condition)
    }
    fn count_matched(&self) -> DdsResult<i32> {
        Ok(block_on(self.get_subscription_matched_status())?.current_count)
    }
    fn delete(&self) -> DdsResult<()> {
        block_on(self.get_subscriber().delete_datareader(self))
    }
}

/// What a reader and its waitset know about each other.
#[derive(Default)]
pub(crate) struct Awaited {
    /// Set once the reader is enabled.
    condition: OnceLock<StatusConditionAsync>,
    /// The reader left samples behind.
    untaken: AtomicBool,
    /// The waiting thread.
    waker: OnceLock<Waker>,
}

impl Awaited {
    pub(crate) fn condition(&self) -> Option<&StatusConditionAsync> {
        self.condition.get()
    }
    pub(crate) fn untaken(&self) -> bool {
        self.untaken.load(Ordering::SeqCst)
    }
}

/// A data reader.
pub(crate) struct DustReader {
    topic: String,
    form: Form,
    /// Taken from Dust DDS but not from this reader yet.
    ready: VecDeque<Places>,
    awaited: Option<Arc<Awaited>>,
    facts: Arc<ReaderStatus>,
}

struct ReaderStatus {
    /// Outlives the reader.
    participant: SharedParticipant,
    reader: OnceLock<Box<dyn Receiving>>,
    qos: DataReaderQos,
}

impl DustReader {
    pub(crate) fn new(context: &DustContext, endpoint: &Endpoint) -> Result<Self> {
        if endpoint.dispatch == Dispatch::Listener {
            let why = "there is no listener that may take or write: a reader is waited for or polled";
            return Err(Error::unsupported(format!("topic '{}': {why}", endpoint.topic)));
        }
        let facts = ReaderStatus {
            participant: context.participant(),
            reader: OnceLock::new(),
            qos: quality::of_reader(endpoint)?,
        };
        Ok(Self {
            topic: endpoint.topic.clone(),
            form: Form::of(endpoint.payload)?,
            ready: VecDeque::new(),
            awaited: None,
            facts: Arc::new(facts),
        })
    }

    /// Makes arrivals wake the waiting thread.
    pub(crate) fn wait_by(&mut self, waker: Waker) -> Result<Arc<Awaited>> {
        if self.awaited.is_some() || self.facts.reader.get().is_some() {
            return Err(Error::invalid("a reader belongs to one waitset, attached before it is enabled"));
        }
        let awaited = Arc::new(Awaited::default());
        let _ = awaited.waker.set(waker);
        self.awaited = Some(awaited.clone());
        Ok(awaited)
    }

    fn made<M: Message>(&self) -> Result<Box<dyn Receiving>> {
        let participant = Participant::of(&self.facts.participant)?;
        let topic = participant.topic::<M>(&self.topic, self.form)?;
        let qos = QosKind::Specific(self.facts.qos.clone());
        let made = participant.subscriber().create_datareader::<M>(&topic, qos, NO_LISTENER, NO_STATUS);
        Ok(Box::new(block_on(made).doing(format!("making a reader on '{}'", self.topic))?))
    }
}

impl Reader for DustReader {
    type Sample = DustSample;

    fn enable(&mut self) -> Result<()> {
        let reader = for_form!(self.form, self.made)?;
        if let Some(awaited) = &self.awaited {
            let condition = reader.data_available().doing("asking for a reader's status condition")?;
            let _ = awaited.condition.set(condition);
            if let Some(waker) = awaited.waker.get() {
                waker.wake_by_ref();
            }
        }
        self.facts.reader.set(reader).map_err(|_| Error::invalid("a reader enabled twice"))
    }

    fn prepare(&mut self, most: usize) -> Result<()> {
        let Some(reader) = self.facts.reader.get().filter(|_| self.ready.is_empty()) else { return Ok(()) };
        let taken = reader.take_most(i32::try_from(most).unwrap_or(i32::MAX)).doing("taking")?;
        if let Some(awaited) = &self.awaited {
            awaited.untaken.store(taken.len() >= most, Ordering::SeqCst);
        }
        self.ready.extend(taken);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<DustSample>> {
        Ok(self.ready.pop_front().map(DustSample))
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

impl Drop for DustReader {
    fn drop(&mut self) {
        // A reader that can't be deleted ends with its participant.
        let _ = self.facts.reader.get().map(|reader| reader.delete());
    }
}

impl Status for ReaderStatus {
    fn matched(&self) -> Matched {
        let count = self.reader.get().and_then(|reader| reader.count_matched().ok());
        Matched::Seen(count.map_or(0, i32::unsigned_abs))
    }
    fn describe(&self) -> Description {
        quality::describe_reader(&self.qos)
    }
}

/// The payload of a taken message.
pub(crate) struct DustSample(Places);

impl Sample for DustSample {
    fn view(&self) -> View<'_> {
        View {
            regions: [&self.0.first, &self.0.second, &[], &[]],
            loaned: false,
            sequence: 0,
            signalled: Signalled::default(),
        }
    }
}
