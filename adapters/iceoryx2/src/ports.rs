// SPDX-License-Identifier: Apache-2.0
//! Writers and readers: a publisher with its notifier, a subscriber with its listener. Or the ends of a
//! service, with an event for its requests and one for its replies.
//!
//! This file contains the `unsafe` that the middleware's interface requires.
#![allow(unsafe_code)]
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::{BackpressureAction, LoanError, SendError};
use iceoryx2::prelude::*;
use iceoryx2::sample::Sample as ReceivedSample;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use lagometer_adapter::{
    Counters, Description, Dispatch, Doing, Endpoint, Error, Loan, Matched, Memory, Origin, Reader, Result,
    Sample, Sent, Status, View, Writer,
};

use crate::context::{sent_event, Events, Iceoryx2Context, Messages, Service};
use crate::quality::{Quality, BORROWED_DEFAULT, BUFFER_DEFAULT};
use crate::services::{Asked, Client, Reply, ReplyLoan, RequestLoan, Server};

/// A port, or one of its samples, of the variant that counts references to a port without a lock.
#[derive(Debug)]
pub(crate) struct Exclusive<T>(T);

// SAFETY: only the port and its samples count references to the port. They are in one writer or reader, and
// one thread at a time uses that one (the header's contract), so two threads never touch the count.
unsafe impl<T> Send for Exclusive<T> {}

impl<T> Deref for Exclusive<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Exclusive<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// What messages are sent through.
enum Outlet {
    Publisher(Exclusive<Publisher<Service, [u8], ()>>, Arc<PortStatus>),
    Client(Arc<Client>),
    /// A server's, and the request to answer next.
    Server(Arc<Server>, Option<Arc<Asked>>),
}

/// A publisher. The order of the fields is the order in which they are dropped.
pub(crate) struct Iceoryx2Writer {
    outlet: Outlet,
    notifier: Exclusive<Notifier<Service>>,
    events: Events,
    /// Whether anybody waits for events. With polling readers nobody does, and an application would not send
    /// any.
    notifies: bool,
}

impl Iceoryx2Writer {
    pub(crate) fn new(context: &Iceoryx2Context, endpoint: &Endpoint) -> Result<Self> {
        let topic = &endpoint.topic;
        let quality = Quality::new(endpoint, context.keep_all_messages())?;
        let messages = context.messages(topic, &quality)?;
        let wait = quality.wait;
        let publisher = messages
            .publisher_builder()
            .initial_max_slice_len(endpoint.payload.bytes_max)
            .max_loaned_samples(1)
            .set_backpressure_handler(move |info| {
                if info.elapsed_time < wait {
                    BackpressureAction::Retry
                } else {
                    BackpressureAction::DiscardDataAndFail
                }
            })
            .create()
            .doing(format!("topic '{topic}': creating the publisher"))?;
        let status = PortStatus::new(Arc::new(messages), quality, End::Writer);
        Self::with(context, topic, Outlet::Publisher(Exclusive(publisher), status))
    }

    /// A client's.
    pub(crate) fn of_requests(
        context: &Iceoryx2Context,
        endpoint: &Endpoint,
        client: Arc<Client>,
    ) -> Result<Self> {
        Self::with(context, &requests_of(&endpoint.topic), Outlet::Client(client))
    }

    /// A server's.
    pub(crate) fn of_replies(
        context: &Iceoryx2Context,
        endpoint: &Endpoint,
        server: Arc<Server>,
    ) -> Result<Self> {
        Self::with(context, &replies_of(&endpoint.topic), Outlet::Server(server, None))
    }

    /// The next committed message answers this request.
    pub(crate) fn answer(&mut self, request: Arc<Asked>) -> Result<()> {
        match &mut self.outlet {
            Outlet::Server(_, next) => *next = Some(request),
            _ => return Err(Error::invalid("only a server's writer can answer")),
        }
        Ok(())
    }

    fn with(context: &Iceoryx2Context, topic: &str, outlet: Outlet) -> Result<Self> {
        let events = context.events(topic)?;
        let notifier = events
            .notifier_builder()
            .default_event_id(sent_event())
            .create()
            .doing(format!("topic '{topic}': creating the notifier"))?;
        Ok(Self { outlet, notifier: Exclusive(notifier), events, notifies: true })
    }
}

/// The prefix of the name of the events that announce a service's requests.
fn requests_of(service: &str) -> String {
    format!("{service}/request")
}

fn replies_of(service: &str) -> String {
    format!("{service}/reply")
}

impl Writer for Iceoryx2Writer {
    type Loan = Iceoryx2Loan;

    fn borrow(&mut self, bytes: usize) -> Result<Option<Iceoryx2Loan>> {
        self.notifies = self.events.dynamic_config().number_of_listeners() > 0;
        match &self.outlet {
            Outlet::Publisher(publisher, status) => match publisher.loan_slice_uninit(bytes) {
                Ok(sample) => Ok(Some(Iceoryx2Loan::Sample(Exclusive(sample)))),
                Err(LoanError::OutOfMemory) => {
                    status.rejected.fetch_add(1, Ordering::Relaxed);
                    Ok(None)
                }
                Err(error) => Err(error).doing("borrowing a sample"),
            },
            Outlet::Client(client) => Ok(client.borrow(bytes)?.map(Iceoryx2Loan::Request)),
            Outlet::Server(server, request) => {
                let request = request.as_ref().ok_or_else(|| Error::invalid("a reply without a request"))?;
                Ok(server.borrow(request, bytes)?.map(Iceoryx2Loan::Reply))
            }
        }
    }

    fn commit(&mut self, loan: Iceoryx2Loan) -> Result<Sent> {
        let sent = match (&mut self.outlet, loan) {
            (Outlet::Publisher(_, status), Iceoryx2Loan::Sample(sample)) => publish(sample, status)?,
            (Outlet::Client(client), Iceoryx2Loan::Request(request)) => client.send(request)?,
            (Outlet::Server(server, request), Iceoryx2Loan::Reply(reply)) => {
                let sent = server.send(reply)?;
                *request = None;
                sent
            }
            _ => return Err(Error::invalid("a message that was borrowed from another writer")),
        };
        if self.notifies {
            // Even after a rejection, because readers with room have got the message.
            self.notifier.notify().doing("notifying")?;
        }
        Ok(sent)
    }

    fn status(&self) -> Arc<dyn Status> {
        match &self.outlet {
            Outlet::Publisher(_, status) => status.clone(),
            Outlet::Client(client) => client.status.clone(),
            Outlet::Server(server, _) => server.status.clone(),
        }
    }
}

type SampleLoan = Exclusive<SampleMutUninit<Service, [MaybeUninit<u8>], ()>>;

fn publish(loan: SampleLoan, status: &PortStatus) -> Result<Sent> {
    // SAFETY: a byte has no invalid value, and the memory is a mapped file that the kernel filled with zeros.
    let sample = unsafe { loan.0.assume_init() };
    match sample.send() {
        Ok(_) => Ok(Sent::Accepted),
        Err(SendError::UnableToDeliver) => {
            status.rejected.fetch_add(1, Ordering::Relaxed);
            Ok(Sent::Rejected)
        }
        Err(error) => Err(error).doing("sending a sample"),
    }
}

/// Shared memory to write a message to.
pub(crate) enum Iceoryx2Loan {
    Sample(SampleLoan),
    Request(RequestLoan),
    Reply(ReplyLoan),
}

impl Loan for Iceoryx2Loan {
    fn origin(&self) -> Origin {
        Origin::Loaned
    }
    fn memory(&mut self) -> Memory<'_> {
        match self {
            Self::Sample(sample) => sample.payload_mut().into(),
            Self::Request(request) => request.payload_mut().into(),
            Self::Reply(reply) => reply.payload_mut().into(),
        }
    }
}

/// Where messages come from.
enum Inlet {
    /// It receives from `enable` on.
    Subscriber(Option<Exclusive<Subscriber<Service, [u8], ()>>>, Arc<Messages>, Arc<PortStatus>),
    Client(Arc<Client>),
    Server(Arc<Server>),
}

/// A subscriber.
pub(crate) struct Iceoryx2Reader {
    inlet: Inlet,
    /// With dispatch by waitset; moved to the waitset when it is attached.
    listener: Option<Exclusive<Listener<Service>>>,
    buffer: usize,
    may_borrow: usize,
    untaken: Untaken,
}

impl Iceoryx2Reader {
    pub(crate) fn new(context: &Iceoryx2Context, endpoint: &Endpoint) -> Result<Self> {
        let quality = Quality::new(endpoint, context.keep_all_messages())?;
        let messages = Arc::new(context.messages(&endpoint.topic, &quality)?);
        let status = PortStatus::new(messages.clone(), quality, End::Reader);
        Self::with(context, endpoint, &endpoint.topic, Inlet::Subscriber(None, messages, status))
    }

    /// A client's.
    pub(crate) fn of_replies(
        context: &Iceoryx2Context,
        endpoint: &Endpoint,
        client: Arc<Client>,
    ) -> Result<Self> {
        Self::with(context, endpoint, &replies_of(&endpoint.topic), Inlet::Client(client))
    }

    /// A server's.
    pub(crate) fn of_requests(
        context: &Iceoryx2Context,
        endpoint: &Endpoint,
        server: Arc<Server>,
    ) -> Result<Self> {
        Self::with(context, endpoint, &requests_of(&endpoint.topic), Inlet::Server(server))
    }

    /// `topic`: the one that its events belong to.
    fn with(context: &Iceoryx2Context, endpoint: &Endpoint, topic: &str, inlet: Inlet) -> Result<Self> {
        let quality = Quality::new(endpoint, context.keep_all_messages())?;
        let listener = match endpoint.dispatch {
            Dispatch::Poll => None,
            Dispatch::Waitset => {
                let listener = context.events(topic)?.listener_builder().create();
                Some(Exclusive(listener.doing(format!("topic '{topic}': creating the listener"))?))
            }
            Dispatch::Listener => {
                return Err(Error::unsupported(
                    "iceoryx2 has no thread that could call a listener; use a waitset",
                ));
            }
        };
        Ok(Self {
            inlet,
            listener,
            buffer: quality.buffer,
            may_borrow: quality.borrowed,
            untaken: Untaken::default(),
        })
    }

    /// What a waitset needs: the listener, its descriptor, and whether anything is left to take.
    pub(crate) fn wait_by(&mut self) -> Result<(Exclusive<Listener<Service>>, i32, Untaken)> {
        let listener =
            self.listener.take().ok_or_else(|| Error::invalid("a reader attached twice, or that polls"))?;
        // SAFETY: the descriptor is used while the waitset has the listener, and nobody closes it.
        let descriptor = unsafe { listener.file_descriptor().native_handle() };
        Ok((listener, descriptor, self.untaken.clone()))
    }
}

impl Reader for Iceoryx2Reader {
    type Sample = Iceoryx2Sample;

    fn enable(&mut self) -> Result<()> {
        match &mut self.inlet {
            Inlet::Subscriber(subscriber, messages, _) => {
                let made = messages.subscriber_builder().buffer_size(self.buffer).create();
                *subscriber = Some(Exclusive(made.doing("creating the subscriber")?));
            }
            Inlet::Client(_) => {}
            Inlet::Server(server) => server.enable()?,
        }
        self.untaken.set(true);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Iceoryx2Sample>> {
        if self.may_borrow == 0 {
            return Ok(None);
        }
        let taken = match &self.inlet {
            Inlet::Subscriber(None, ..) => None,
            Inlet::Subscriber(Some(subscriber), ..) => {
                let sample = subscriber.receive().doing("receiving")?;
                sample.map(|sample| Iceoryx2Sample::Sample(Exclusive(sample)))
            }
            Inlet::Client(client) => client.take()?.map(Iceoryx2Sample::Reply),
            Inlet::Server(server) => {
                server.take()?.map(|request| Iceoryx2Sample::Request(request, Answered(false)))
            }
        };
        match &taken {
            Some(_) => self.may_borrow -= 1,
            None => self.untaken.set(false),
        }
        Ok(taken)
    }

    fn release(&mut self, sample: Iceoryx2Sample) {
        drop(sample);
        self.may_borrow += 1;
    }

    fn status(&self) -> Arc<dyn Status> {
        match &self.inlet {
            Inlet::Subscriber(_, _, status) => status.clone(),
            Inlet::Client(client) => client.status.clone(),
            Inlet::Server(server) => server.status.clone(),
        }
    }
}

/// Shared memory that holds a message.
pub(crate) enum Iceoryx2Sample {
    Sample(Exclusive<ReceivedSample<Service, [u8], ()>>),
    Request(Arc<Asked>, Answered),
    Reply(Reply),
}

/// Whether a request has been answered.
pub(crate) struct Answered(bool);

impl Iceoryx2Sample {
    /// The request in it, once.
    pub(crate) fn asked(&mut self) -> Result<Arc<Asked>> {
        match self {
            Self::Request(_, Answered(true)) => Err(Error::invalid("a request that is answered twice")),
            Self::Request(request, answered) => {
                answered.0 = true;
                Ok(request.clone())
            }
            _ => Err(Error::invalid("an answer to a message that is not a request")),
        }
    }
}

impl Sample for Iceoryx2Sample {
    fn view(&self) -> View<'_> {
        let payload = match self {
            Self::Sample(sample) => sample.payload(),
            Self::Request(request, _) => request.payload(),
            Self::Reply(reply) => reply.payload(),
        };
        View { regions: [payload, &[], &[], &[]], loaned: true, ..View::default() }
    }
}

/// Whether a reader may have messages that no further event will announce: from an event on, until a take has
/// found nothing.
#[derive(Debug, Clone)]
pub(crate) struct Untaken(Arc<AtomicBool>);

impl Default for Untaken {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Untaken {
    pub(crate) fn set(&self, value: bool) {
        self.0.store(value, Ordering::Release);
    }
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Writer,
    Reader,
}

#[derive(Debug)]
struct PortStatus {
    messages: Arc<Messages>,
    quality: Quality,
    end: End,
    rejected: AtomicU64,
}

impl PortStatus {
    fn new(messages: Arc<Messages>, quality: Quality, end: End) -> Arc<Self> {
        Arc::new(Self { messages, quality, end, rejected: AtomicU64::new(0) })
    }
}

impl Status for PortStatus {
    fn matched(&self) -> Matched {
        let ports = self.messages.dynamic_config();
        let count = match self.end {
            End::Writer => ports.number_of_subscribers(),
            End::Reader => ports.number_of_publishers(),
        };
        Matched::Seen(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn counters(&self) -> Counters {
        match self.end {
            End::Writer => {
                Counters { rejected: Some(self.rejected.load(Ordering::Relaxed)), ..Counters::default() }
            }
            End::Reader => Counters::default(),
        }
    }

    fn describe(&self) -> Description {
        Description::default()
            .setting("publish-subscribe.enable-safe-overflow", self.quality.overflows, true)
            .setting("publish-subscribe.subscriber-max-buffer-size", self.quality.buffer, BUFFER_DEFAULT)
            .setting(
                "publish-subscribe.subscriber-max-borrowed-samples",
                self.quality.borrowed,
                BORROWED_DEFAULT,
            )
    }
}
