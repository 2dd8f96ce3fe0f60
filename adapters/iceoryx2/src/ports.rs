// SPDX-License-Identifier: Apache-2.0
//! Writers and readers: a publisher with its notifier, a subscriber with its listener.
//!
//! This file has what `unsafe` the middleware's interface asks for.
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

/// A port, or a sample of it, of the variant whose ports count their references without a lock.
#[derive(Debug)]
pub(crate) struct Exclusive<T>(T);

// SAFETY: all that counts references to one port are the port and its samples. They live in one writer or one reader,
// and one thread at a time uses that one (the header's contract), so the count is never touched by two.
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

/// A publisher. The order of the fields is that of their end.
pub(crate) struct Iceoryx2Writer {
    publisher: Exclusive<Publisher<Service, [u8], ()>>,
    notifier: Exclusive<Notifier<Service>>,
    events: Events,
    /// Whether anybody waits for events. With readers that poll nobody does, and an application would send none.
    notifies: bool,
    status: Arc<PortStatus>,
}

impl Iceoryx2Writer {
    pub(crate) fn new(context: &Iceoryx2Context, endpoint: &Endpoint) -> Result<Self> {
        let topic = &endpoint.topic;
        let quality = Quality::new(endpoint, context.keep_all_messages())?;
        let messages = context.messages(topic, &quality)?;
        let events = context.events(topic)?;
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
        let notifier = events
            .notifier_builder()
            .default_event_id(sent_event())
            .create()
            .doing(format!("topic '{topic}': creating the notifier"))?;
        let status = PortStatus::new(Arc::new(messages), quality, End::Writer);
        Ok(Self {
            publisher: Exclusive(publisher),
            notifier: Exclusive(notifier),
            events,
            notifies: true,
            status,
        })
    }
}

impl Writer for Iceoryx2Writer {
    type Loan = Iceoryx2Loan;

    fn borrow(&mut self, bytes: usize) -> Result<Option<Iceoryx2Loan>> {
        self.notifies = self.events.dynamic_config().number_of_listeners() > 0;
        match self.publisher.loan_slice_uninit(bytes) {
            Ok(sample) => Ok(Some(Iceoryx2Loan(Exclusive(sample)))),
            Err(LoanError::OutOfMemory) => {
                self.status.rejected.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error).doing("borrowing a sample"),
        }
    }

    fn commit(&mut self, loan: Iceoryx2Loan) -> Result<Sent> {
        // SAFETY: a byte has no invalid value, and the memory is a mapped file that the kernel filled with zeros.
        let sample = unsafe { loan.0 .0.assume_init() };
        let sent = match sample.send() {
            Ok(_) => Sent::Accepted,
            Err(SendError::UnableToDeliver) => {
                self.status.rejected.fetch_add(1, Ordering::Relaxed);
                Sent::Rejected
            }
            Err(error) => return Err(error).doing("sending a sample"),
        };
        if self.notifies {
            // Also after a rejection, since those with room have got it.
            self.notifier.notify().doing("notifying")?;
        }
        Ok(sent)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.status.clone()
    }
}

/// Shared memory that a message is written to.
pub(crate) struct Iceoryx2Loan(Exclusive<SampleMutUninit<Service, [MaybeUninit<u8>], ()>>);

impl Loan for Iceoryx2Loan {
    fn origin(&self) -> Origin {
        Origin::Loaned
    }
    fn memory(&mut self) -> Memory<'_> {
        self.0.payload_mut().into()
    }
}

/// A subscriber. It hears from `enable` on.
pub(crate) struct Iceoryx2Reader {
    subscriber: Option<Exclusive<Subscriber<Service, [u8], ()>>>,
    /// With dispatch by waitset; goes to the waitset when that is attached.
    listener: Option<Exclusive<Listener<Service>>>,
    messages: Arc<Messages>,
    buffer: usize,
    may_borrow: usize,
    untaken: Untaken,
    status: Arc<PortStatus>,
}

impl Iceoryx2Reader {
    pub(crate) fn new(context: &Iceoryx2Context, endpoint: &Endpoint) -> Result<Self> {
        let topic = &endpoint.topic;
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
        let messages = Arc::new(context.messages(topic, &quality)?);
        Ok(Self {
            subscriber: None,
            listener,
            messages: messages.clone(),
            buffer: quality.buffer,
            may_borrow: quality.borrowed,
            untaken: Untaken::default(),
            status: PortStatus::new(messages, quality, End::Reader),
        })
    }

    /// What a waitset needs of it: the listener, its descriptor, and what says whether anything is left to take.
    pub(crate) fn wait_by(&mut self) -> Result<(Exclusive<Listener<Service>>, i32, Untaken)> {
        let listener =
            self.listener.take().ok_or_else(|| Error::invalid("a reader attached twice, or that polls"))?;
        // SAFETY: the descriptor is used as long as the waitset has the listener, and nobody closes it.
        let descriptor = unsafe { listener.file_descriptor().native_handle() };
        Ok((listener, descriptor, self.untaken.clone()))
    }
}

impl Reader for Iceoryx2Reader {
    type Sample = Iceoryx2Sample;

    fn enable(&mut self) -> Result<()> {
        let subscriber = self.messages.subscriber_builder().buffer_size(self.buffer).create();
        self.subscriber = Some(Exclusive(subscriber.doing("creating the subscriber")?));
        self.untaken.set(true);
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Iceoryx2Sample>> {
        let Some(subscriber) = &self.subscriber else {
            self.untaken.set(false);
            return Ok(None);
        };
        if self.may_borrow == 0 {
            return Ok(None);
        }
        match subscriber.receive().doing("receiving")? {
            Some(sample) => {
                self.may_borrow -= 1;
                Ok(Some(Iceoryx2Sample(Exclusive(sample))))
            }
            None => {
                self.untaken.set(false);
                Ok(None)
            }
        }
    }

    fn release(&mut self, sample: Iceoryx2Sample) {
        drop(sample);
        self.may_borrow += 1;
    }

    fn status(&self) -> Arc<dyn Status> {
        self.status.clone()
    }
}

/// Shared memory that shows a message.
pub(crate) struct Iceoryx2Sample(Exclusive<ReceivedSample<Service, [u8], ()>>);

impl Sample for Iceoryx2Sample {
    fn view(&self) -> View<'_> {
        View { regions: [self.0.payload(), &[], &[], &[]], loaned: true, ..View::default() }
    }
}

/// Whether a reader may have messages that no event will announce any more: from an event on, until a take has found
/// nothing.
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
