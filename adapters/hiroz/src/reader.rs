// SPDX-License-Identifier: Apache-2.0
//! Readers: a subscription with a callback, which Zenoh's thread calls with the finished message; otherwise
//! with the vendor's queue, whose messages are deserialised when they are taken. Or the receiving end of a
//! service.
use std::sync::Arc;

use hiroz::attachment::Attachment;
use hiroz::entity::EndpointKind;
use hiroz::msg::{NativeCdrSerdes, ZDeserializer};
use hiroz::pubsub::ZSub;
use lagometer_adapter::{
    callback, writer_id, Counters, Description, Dispatch, Doing, Endpoint, Error, Fillable, HasInbox,
    History, Inbox, Layer, Layers, Matched, Reader, Result, Ros2Message, Sample, Signalled, Span, Stamps,
    Status, View,
};
use zenoh::sample::Sample as Received;

use crate::context::{Facts, HirozContext, Opened, SharedSession, Wanted};
use crate::message::{Bytes, Held, Image, Imu, Message, PointCloud2, Text};
use crate::queued::Queued;
use crate::services::{Ends, Reply};
use crate::stamping::Deserialising;
use crate::writer::number_of;

/// The depth of a subscription if the study requests no history.
const HISTORY_DEFAULT: History = History::KeepLast(hiroz::qos::DEFAULT_HISTORY_DEPTH);

/// How many messages may wait in a KEEP_ALL subscription with a callback, where each call takes one.
const KEEP_ALL_MESSAGES: usize = 65_536;

/// A subscription of any type; one with a callback delivers messages by itself.
pub(crate) trait Receiving: Send {
    /// `stamps`: of the message, if somebody asked for them; an end of a service has none.
    fn take_one(&self, stamps: Option<&mut Stamps>) -> Result<Option<Arrived>>;
}

impl<M: Message> Receiving for ZSub<M, Received, NativeCdrSerdes<M>> {
    fn take_one(&self, stamps: Option<&mut Stamps>) -> Result<Option<Arrived>> {
        let take = || {
            let sample = self.queue.as_ref().and_then(|queue| queue.try_recv());
            let Some(sample) = sample else { return Ok(None) };
            // As in ZSub::recv.
            let message = {
                let payload = sample.payload().to_bytes();
                Span::of(|| NativeCdrSerdes::<M>::deserialize(&payload)).0
            };
            Ok(Some((message.doing("making a message of what came")?, sample)))
        };
        let Some(stamps) = stamps else {
            return Ok(take()?.map(|(message, _)| Arrived::of(message.into_held())));
        };
        let (taken, deserialised) = stamps.around(Layer::Take, Layer::Deserialise, take);
        stamps.set_inner(Layer::Deserialise, deserialised);
        Ok(taken?.map(|(message, sample)| {
            let mut arrived = Arrived::of(message.into_held());
            if let Some(Ok(attached)) = sample.attachment().map(Attachment::try_from) {
                arrived.sequence = number_of(attached.sequence_number.unsigned_abs());
                stamps.set_key(writer_id(&attached.source_gid), arrived.sequence);
            }
            arrived
        }))
    }
}

impl<M: Message, S: ZDeserializer + Send> Receiving for ZSub<M, (), S> {
    fn take_one(&self, _stamps: Option<&mut Stamps>) -> Result<Option<Arrived>> {
        Ok(None)
    }
}

pub(crate) struct Arrived {
    pub(crate) held: Held,
    /// For a request, until it is answered.
    pub(crate) reply: Option<Reply>,
    pub(crate) signalled: Signalled,
    /// The publisher's number for it, with stamps; 0: not known.
    pub(crate) sequence: u64,
    /// When Zenoh's thread deserialised it, with stamps.
    pub(crate) deserialised: Option<Span>,
}

impl Arrived {
    pub(crate) fn of(held: Held) -> Self {
        Self { held, reply: None, signalled: Signalled::default(), sequence: 0, deserialised: None }
    }
}

/// How messages reach the taking thread.
#[derive(Clone)]
pub(crate) enum Way {
    /// By callback.
    Called(Arc<Inbox<Arrived>>),
    /// From the vendor's queue.
    Queued(Arc<Queued>),
}

/// A subscription.
pub(crate) struct HirozReader {
    subscription: Option<Box<dyn Receiving>>,
    service: Option<Arc<Ends>>,
    way: Way,
    wanted: Wanted,
    session: SharedSession,
    facts: Arc<ReaderFacts>,
    stamps: Option<Stamps>,
}

/// `noted`: whether somebody asked when messages are deserialised.
fn made<M: Message>(opened: &Opened, wanted: &Wanted, way: &Way, noted: bool) -> Result<Box<dyn Receiving>> {
    let doing = format!("making a subscription to '{}'", wanted.topic);
    opened.make(&wanted.node, |node| {
        let builder = node.create_sub::<M>(&wanted.topic).with_qos(wanted.profile);
        match way {
            Way::Called(inbox) if noted => {
                let inbox = inbox.clone();
                let called = move |(message, span): (M, Span)| called(&inbox, message, Some(span));
                let builder = builder.with_serdes::<Deserialising<M>>();
                let subscription = builder.build_with_callback(called).doing(doing)?;
                Ok(Box::new(subscription) as Box<dyn Receiving>)
            }
            Way::Called(inbox) => {
                let inbox = inbox.clone();
                let called = move |message: M| called(&inbox, message, None);
                let subscription = builder.build_with_callback(called).doing(doing)?;
                Ok(Box::new(subscription) as Box<dyn Receiving>)
            }
            Way::Queued(queued) => {
                let told = queued.clone();
                let subscription = builder.build_with_notifier(move || told.ring()).doing(doing)?;
                if let Some(queue) = subscription.queue.clone() {
                    queued.asks(move || !queue.is_empty());
                }
                Ok(Box::new(subscription) as Box<dyn Receiving>)
            }
        }
    })
}

/// A subscription's callback. [Zenoh's thread]
fn called<M: Message>(inbox: &Inbox<Arrived>, message: M, deserialised: Option<Span>) {
    let signalled = Signalled::now();
    callback("a subscription's callback", || {
        inbox.push(Arrived { signalled, deserialised, ..Arrived::of(message.into_held()) });
    });
}

impl Way {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        if endpoint.dispatch == Dispatch::Listener {
            Self::Called(Inbox::new(endpoint, HISTORY_DEFAULT, KEEP_ALL_MESSAGES))
        } else {
            Self::Queued(Arc::default())
        }
    }
}

impl HirozReader {
    pub(crate) fn new(context: &HirozContext, endpoint: &Endpoint) -> Self {
        Self::with(context, endpoint, Way::new(endpoint), EndpointKind::Publisher, None)
    }

    /// An end of a service.
    pub(crate) fn of(context: &HirozContext, endpoint: &Endpoint, way: Way, ends: Arc<Ends>) -> Self {
        let counterparts = ends.counterparts();
        Self::with(context, endpoint, way, counterparts, Some(ends))
    }

    fn with(
        context: &HirozContext,
        endpoint: &Endpoint,
        way: Way,
        counterparts: EndpointKind,
        service: Option<Arc<Ends>>,
    ) -> Self {
        let (wanted, session) = (Wanted::new(endpoint), context.session());
        let inbox = match &way {
            Way::Called(inbox) => Some(inbox.clone()),
            Way::Queued(_) => None,
        };
        let endpoint = Facts::new(session.clone(), &wanted, counterparts);
        let facts = Arc::new(ReaderFacts { endpoint, inbox });
        Self { subscription: None, service, way, wanted, session, facts, stamps: None }
    }
}

impl Reader for HirozReader {
    type Sample = HirozSample;

    fn enable(&mut self) -> Result<()> {
        if let Some(ends) = &self.service {
            self.subscription = Some(ends.receiving()?);
            return Ok(());
        }
        let (opened, wanted, way) = (Opened::of(&self.session)?, &self.wanted, &self.way);
        let noted = self.stamps.is_some();
        self.subscription = Some(match wanted.payload.message {
            None => made::<Bytes>(opened, wanted, way, noted)?,
            Some(Ros2Message::String) => made::<Text>(opened, wanted, way, noted)?,
            Some(Ros2Message::Image) => made::<Image>(opened, wanted, way, noted)?,
            Some(Ros2Message::Imu) => made::<Imu>(opened, wanted, way, noted)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(opened, wanted, way, noted)?,
        });
        Ok(())
    }

    fn take(&mut self) -> Result<Option<HirozSample>> {
        if let Some(stamps) = &mut self.stamps {
            stamps.begin();
        }
        let arrived = match (&self.way, &self.subscription) {
            (Way::Called(inbox), _) => {
                let arrived = inbox.pop();
                if let (Some(stamps), Some(arrived)) = (&mut self.stamps, &arrived) {
                    stamps.set_inner(Layer::Deserialise, arrived.deserialised);
                }
                arrived
            }
            (Way::Queued(_), Some(subscription)) => subscription.take_one(self.stamps.as_mut())?,
            (Way::Queued(_), None) => None,
        };
        Ok(arrived.map(HirozSample))
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

impl HasInbox for HirozReader {
    fn inbox(&self) -> Arc<dyn Fillable> {
        match &self.way {
            Way::Called(inbox) => inbox.clone(),
            Way::Queued(queued) => queued.clone(),
        }
    }
}

/// What any thread may query about a subscription.
struct ReaderFacts {
    endpoint: Facts,
    inbox: Option<Arc<Inbox<Arrived>>>,
}

impl Status for ReaderFacts {
    fn matched(&self) -> Matched {
        self.endpoint.matched()
    }
    /// The vendor's queue does not count what newer messages push out.
    fn counters(&self) -> Counters {
        self.inbox.as_ref().map_or_else(Counters::default, |inbox| inbox.counters())
    }
    fn describe(&self) -> Description {
        self.endpoint.describe()
    }
    fn close(&self) {
        if let Some(inbox) = &self.inbox {
            inbox.close();
        }
    }
}

/// The payload of a taken message.
pub(crate) struct HirozSample(Arrived);

impl HirozSample {
    /// What answers a request, once.
    pub(crate) fn reply(&mut self) -> Result<Reply> {
        let reply = self.0.reply.take();
        reply.ok_or_else(|| Error::invalid("an answer to what is not a request, or a second answer"))
    }
}

impl Sample for HirozSample {
    fn view(&self) -> View<'_> {
        let [first, second] = self.0.held.regions();
        let Arrived { signalled, sequence, .. } = self.0;
        View { regions: [first, second, &[], &[]], loaned: false, sequence, signalled }
    }
}
