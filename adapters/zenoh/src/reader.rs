// SPDX-License-Identifier: Apache-2.0
//! Readers: a Zenoh subscriber with a callback that puts samples into the reader's queue.
use std::sync::Arc;

use lagometer_adapter::{
    callback, Dispatch, Doing, Endpoint, Fillable, HasInbox, History, Inbox, Reader, Result, Sample,
    Signalled, Status, View,
};
use zenoh::pubsub::Subscriber;
use zenoh::sample::Sample as Received;
use zenoh::Wait;

use crate::context::{open_session, SharedSession, ZenohContext};
use crate::settings::Transport;
use crate::writer::refuse_transient_local;

/// The depth of Zenoh's own channel, where the study asks for no history.
const HISTORY_DEFAULT: History = History::KeepLast(256);

/// Unless the study says, a KEEP_ALL queue holds so much of the largest messages, within these bounds.
const KEEP_ALL_BYTES: usize = 256 << 20;
const KEEP_ALL_MIN: usize = 256;
const KEEP_ALL_MAX: usize = 65_536;

struct Arrived {
    sample: Received,
    signalled: Signalled,
}

/// A subscriber.
pub(crate) struct ZenohReader {
    subscriber: Option<Subscriber<()>>,
    inbox: Arc<Inbox<Arrived>>,
    session: SharedSession,
    key: String,
    shared_memory: bool,
    /// Whether a message wakes anybody; if not, its arrival is not examined.
    signals: bool,
    /// Buffers for messages that came in pieces, used again.
    spare: Vec<Vec<u8>>,
}

impl ZenohReader {
    pub(crate) fn new(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        refuse_transient_local(endpoint)?;
        let fitting = (KEEP_ALL_BYTES / endpoint.payload.bytes_max).clamp(KEEP_ALL_MIN, KEEP_ALL_MAX);
        let keep_all_messages = context.settings().keep_all_messages.unwrap_or(fitting);
        Ok(Self {
            subscriber: None,
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
        let subscriber = open_session(&self.session)?
            .declare_subscriber(self.key.clone())
            .callback(move |sample| {
                let signalled = if signals { Signalled::now() } else { Signalled::default() };
                callback("a subscriber's callback", || inbox.push(Arrived { sample, signalled }));
            })
            .wait()
            .doing(format!("declaring a subscriber on '{}'", self.key))?;
        self.subscriber = Some(subscriber);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<ZenohSample>> {
        let Some(arrived) = self.inbox.pop() else { return Ok(None) };
        let payload = arrived.sample.payload();
        let mut whole = None;
        if payload.slices().nth(1).is_some() {
            // In pieces, as a message above 64 KB comes off a socket. An application joins them to read it.
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

/// A message, joined if it came in pieces.
pub(crate) struct ZenohSample {
    arrived: Arrived,
    whole: Option<Vec<u8>>,
    loaned: bool,
}

impl Sample for ZenohSample {
    fn view(&self) -> View<'_> {
        let payload = match &self.whole {
            Some(buffer) => buffer,
            None => self.arrived.sample.payload().slices().next().unwrap_or_default(),
        };
        View {
            regions: [payload, &[], &[], &[]],
            loaned: self.loaned,
            sequence: 0,
            signalled: self.arrived.signalled,
        }
    }
}
