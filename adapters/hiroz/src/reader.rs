// SPDX-License-Identifier: Apache-2.0
//! Readers: a subscription with a callback, which Zenoh's thread calls with the finished message; otherwise
//! with the vendor's queue, whose messages are deserialised when they are taken. Or the receiving end of a
//! service.
use std::sync::Arc;

use hiroz::entity::EndpointKind;
use hiroz::msg::{NativeCdrSerdes, ZDeserializer};
use hiroz::pubsub::ZSub;
use lagometer_adapter::{
    callback, Counters, Description, Dispatch, Doing, Endpoint, Error, Fillable, HasInbox, History, Inbox,
    Matched, Reader, Result, Ros2Message, Sample, Signalled, Status, View,
};
use zenoh::sample::Sample as Received;

use crate::context::{Facts, HirozContext, Opened, SharedSession, Wanted};
use crate::message::{Bytes, Held, Image, Imu, Message, PointCloud2, Text};
use crate::queued::Queued;
use crate::services::{self, Ends, Reply};

/// The depth of a subscription if the study requests no history.
const HISTORY_DEFAULT: History = History::KeepLast(hiroz::qos::DEFAULT_HISTORY_DEPTH);

/// How many messages may wait in a KEEP_ALL subscription with a callback, where each call takes one.
const KEEP_ALL_MESSAGES: usize = 65_536;

/// A subscription of any type; one with a callback delivers messages by itself.
pub(crate) trait Receiving: Send {
    fn take_one(&self) -> Result<Option<services::Received>>;
}

impl<M: Message> Receiving for ZSub<M, Received, NativeCdrSerdes<M>> {
    fn take_one(&self) -> Result<Option<services::Received>> {
        let Some(sample) = self.queue.as_ref().and_then(|queue| queue.try_recv()) else { return Ok(None) };
        // As in ZSub::recv.
        let payload = sample.payload().to_bytes();
        let message = NativeCdrSerdes::<M>::deserialize(&payload).doing("making a message of what came")?;
        Ok(Some((message.into_held(), None)))
    }
}

impl<M: Message> Receiving for ZSub<M, (), NativeCdrSerdes<M>> {
    fn take_one(&self) -> Result<Option<services::Received>> {
        Ok(None)
    }
}

pub(crate) struct Arrived {
    pub(crate) held: Held,
    /// For a request, until it is answered.
    pub(crate) reply: Option<Reply>,
    pub(crate) signalled: Signalled,
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
}

fn made<M: Message>(opened: &Opened, wanted: &Wanted, way: &Way) -> Result<Box<dyn Receiving>> {
    let doing = format!("making a subscription to '{}'", wanted.topic);
    opened.make(&wanted.node, |node| {
        let builder = node.create_sub::<M>(&wanted.topic).with_qos(wanted.profile);
        match way {
            Way::Called(inbox) => {
                let inbox = inbox.clone();
                let called = move |message: M| {
                    let signalled = Signalled::now();
                    callback("a subscription's callback", || {
                        inbox.push(Arrived { held: message.into_held(), reply: None, signalled });
                    });
                };
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
        Self { subscription: None, service, way, wanted, session, facts }
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
        self.subscription = Some(match wanted.payload.message {
            None => made::<Bytes>(opened, wanted, way)?,
            Some(Ros2Message::String) => made::<Text>(opened, wanted, way)?,
            Some(Ros2Message::Image) => made::<Image>(opened, wanted, way)?,
            Some(Ros2Message::Imu) => made::<Imu>(opened, wanted, way)?,
            Some(Ros2Message::PointCloud2) => made::<PointCloud2>(opened, wanted, way)?,
        });
        Ok(())
    }

    fn take(&mut self) -> Result<Option<HirozSample>> {
        let arrived = match (&self.way, &self.subscription) {
            (Way::Called(inbox), _) => inbox.pop(),
            (Way::Queued(_), Some(subscription)) => {
                let taken = subscription.take_one()?;
                taken.map(|(held, reply)| Arrived { held, reply, signalled: Signalled::default() })
            }
            (Way::Queued(_), None) => None,
        };
        Ok(arrived.map(HirozSample))
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
        View { regions: [first, second, &[], &[]], loaned: false, sequence: 0, signalled: self.0.signalled }
    }
}
