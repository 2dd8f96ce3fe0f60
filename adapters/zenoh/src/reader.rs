// SPDX-License-Identifier: Apache-2.0
//! Readers: a Zenoh subscriber with a callback that puts samples into the reader's queue; for a server a
//! queryable, for a client the callback of each of its queries.
use std::sync::Arc;

use lagometer_adapter::{
    callback, Dispatch, Doing, Endpoint, Error, Fillable, HasInbox, History, Inbox, Reader, Result, Sample,
    Signalled, Status, View,
};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Subscriber;
use zenoh::query::{Query, Queryable, Reply};
use zenoh::sample::Sample as Received;
use zenoh::Wait;

use crate::context::{open_session, SharedSession, ZenohContext};
use crate::settings::Transport;
use crate::writer::refuse_transient_local;

/// The depth of Zenoh's own channel, used if the study requests no history.
const HISTORY_DEFAULT: History = History::KeepLast(256);

/// Unless the study says otherwise, a KEEP_ALL queue holds this much of the largest messages, within these
/// bounds.
const KEEP_ALL_BYTES: usize = 256 << 20;
const KEEP_ALL_MIN: usize = 256;
const KEEP_ALL_MAX: usize = 65_536;

pub(crate) struct Arrived {
    what: What,
    signalled: Signalled,
}

/// What may arrive: a sample, also that of a reply, or a query, until it is answered. Its payload stays.
enum What {
    Sample(Received),
    Query(ZBytes, Option<Query>),
}

impl What {
    fn payload(&self) -> &ZBytes {
        match self {
            Self::Sample(sample) => sample.payload(),
            Self::Query(payload, _) => payload,
        }
    }
}

/// Where messages come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Publishers,
    Clients,
    Server,
}

/// What delivers them; it ends with the reader.
enum Declared {
    Subscriber(#[allow(dead_code)] Subscriber<()>),
    Queryable(#[allow(dead_code)] Queryable<()>),
    Nothing,
}

/// Where the replies to a client's queries go.
#[derive(Clone)]
pub(crate) struct Replies {
    inbox: Arc<Inbox<Arrived>>,
    signals: bool,
}

impl Replies {
    /// An error is not a reply: the request stays unanswered.
    pub(crate) fn note(&self, reply: Reply) {
        let signalled = if self.signals { Signalled::now() } else { Signalled::default() };
        if let Ok(sample) = reply.into_result() {
            let arrived = Arrived { what: What::Sample(sample), signalled };
            callback("a reply's callback", || self.inbox.push(arrived));
        }
    }
}

/// A subscriber.
pub(crate) struct ZenohReader {
    declared: Declared,
    from: From,
    inbox: Arc<Inbox<Arrived>>,
    session: SharedSession,
    key: String,
    shared_memory: bool,
    /// Whether a message wakes anybody; if not, its arrival is not examined.
    signals: bool,
    /// Reusable buffers for messages that arrived in pieces.
    spare: Vec<Vec<u8>>,
}

impl ZenohReader {
    pub(crate) fn new(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        Self::with(context, endpoint, From::Publishers)
    }

    /// A server's.
    pub(crate) fn of_requests(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        Self::with(context, endpoint, From::Clients)
    }

    /// A client's.
    pub(crate) fn of_replies(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        Self::with(context, endpoint, From::Server)
    }

    /// Where a client's queries deliver their replies.
    pub(crate) fn replies(&self) -> Replies {
        Replies { inbox: self.inbox.clone(), signals: self.signals }
    }

    fn with(context: &ZenohContext, endpoint: &Endpoint, from: From) -> Result<Self> {
        refuse_transient_local(endpoint)?;
        let fitting = (KEEP_ALL_BYTES / endpoint.payload.bytes_max).clamp(KEEP_ALL_MIN, KEEP_ALL_MAX);
        let keep_all_messages = context.settings().keep_all_messages.unwrap_or(fitting);
        Ok(Self {
            declared: Declared::Nothing,
            from,
            inbox: Inbox::new(endpoint, HISTORY_DEFAULT, keep_all_messages),
            session: context.session(),
            key: context.key(endpoint),
            shared_memory: context.settings().transport == Transport::SharedMemory,
            signals: endpoint.dispatch != Dispatch::Poll,
            spare: Vec::new(),
        })
    }
}

impl Reader for ZenohReader {
    type Sample = ZenohSample;

    fn enable(&mut self) -> Result<()> {
        let (inbox, signals) = (self.inbox.clone(), self.signals);
        let session = open_session(&self.session)?;
        let arrived = move |what| {
            let signalled = if signals { Signalled::now() } else { Signalled::default() };
            callback("a callback", || inbox.push(Arrived { what, signalled }));
        };
        self.declared = match self.from {
            From::Publishers => Declared::Subscriber(
                session
                    .declare_subscriber(self.key.clone())
                    .callback(move |sample| arrived(What::Sample(sample)))
                    .wait()
                    .doing(format!("declaring a subscriber on '{}'", self.key))?,
            ),
            From::Clients => Declared::Queryable(
                session
                    .declare_queryable(self.key.clone())
                    .callback(move |query| {
                        arrived(What::Query(query.payload().cloned().unwrap_or_default(), Some(query)));
                    })
                    .wait()
                    .doing(format!("declaring a queryable on '{}'", self.key))?,
            ),
            From::Server => Declared::Nothing,
        };
        Ok(())
    }

    fn take(&mut self) -> Result<Option<ZenohSample>> {
        let Some(arrived) = self.inbox.pop() else { return Ok(None) };
        let payload = arrived.what.payload();
        let mut whole = None;
        if payload.slices().nth(1).is_some() {
            // In pieces, as messages above 64 KB arrive from a socket. An application joins them to read the
            // message.
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.clear();
            buffer.reserve(payload.len());
            payload.slices().for_each(|piece| buffer.extend_from_slice(piece));
            whole = Some(buffer);
        }
        let loaned = self.shared_memory && whole.is_none() && payload.as_shm().is_some();
        Ok(Some(ZenohSample { arrived, whole, loaned }))
    }

    fn release(&mut self, sample: ZenohSample) {
        self.spare.extend(sample.whole);
    }

    fn status(&self) -> Arc<dyn Status> {
        self.inbox.clone()
    }
}

impl HasInbox for ZenohReader {
    fn inbox(&self) -> Arc<dyn Fillable> {
        self.inbox.clone()
    }
}

/// A message, joined if it arrived in pieces.
pub(crate) struct ZenohSample {
    arrived: Arrived,
    whole: Option<Vec<u8>>,
    loaned: bool,
}

impl ZenohSample {
    /// The query in it, once.
    pub(crate) fn query(&mut self) -> Result<Query> {
        match &mut self.arrived.what {
            What::Query(_, query) => {
                query.take().ok_or_else(|| Error::invalid("a request that is answered twice"))
            }
            What::Sample(_) => Err(Error::invalid("an answer to a message that is not a request")),
        }
    }
}

impl Sample for ZenohSample {
    fn view(&self) -> View<'_> {
        let payload = match &self.whole {
            Some(buffer) => buffer,
            None => self.arrived.what.payload().slices().next().unwrap_or_default(),
        };
        View {
            regions: [payload, &[], &[], &[]],
            loaned: self.loaned,
            sequence: 0,
            signalled: self.arrived.signalled,
        }
    }
}
