// SPDX-License-Identifier: Apache-2.0
//! What an adapter implements: one type for the middleware, and one each for writers, readers and waitsets.
//!
//! Methods that take `&mut self` are never called by two threads at once, but not always by the same thread;
//! hence `Send`. What any thread may query at any time is in a `Status`, which is shared with the object.
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::{ContextConfig, Description, Endpoint, Error, Layers, Result, Stamps};

/// A middleware.
pub trait Adapter: Sized + 'static {
    /// As in the sidecar.
    const NAME: &'static str;
    /// The text of `adapter.json`.
    const SIDECAR: &'static str;
    /// The middleware's version.
    const VERSION: &'static str;
    /// One participant in one domain.
    type Context: Context;
    /// A publisher on a topic.
    type Writer: Writer;
    /// A subscriber on a topic.
    type Reader: Reader;
    /// What a thread waits on.
    type Waitset: Waitset<Self::Reader>;

    /// Creates a context; nothing starts before its `enable`.
    fn context(config: ContextConfig) -> Result<Self::Context>;
    /// Creates a writer.
    fn writer(context: &Self::Context, endpoint: &Endpoint) -> Result<Self::Writer>;
    /// Creates a reader.
    fn reader(context: &Self::Context, endpoint: &Endpoint) -> Result<Self::Reader>;
    /// Creates a waitset.
    fn waitset(context: &Self::Context) -> Result<Self::Waitset>;

    /// Whether it has its own request and reply (`lagometer/services.h`); the sidecar also declares it.
    const SERVICES: bool = false;
    /// Creates a client: the writer of its requests and the reader of its replies.
    fn client(
        _context: &Self::Context,
        _request: &Endpoint,
        _reply: &Endpoint,
    ) -> Result<(Self::Writer, Self::Reader)> {
        Err(Error::unsupported("it has no request and reply"))
    }
    /// Creates a server: the writer of its replies and the reader of requests.
    fn server(
        _context: &Self::Context,
        _request: &Endpoint,
        _reply: &Endpoint,
    ) -> Result<(Self::Writer, Self::Reader)> {
        Err(Error::unsupported("it has no request and reply"))
    }
    /// The next message committed on this server's writer answers this request, which its reader has taken.
    /// Fails if the request was already answered.
    fn answer(_replies: &mut Self::Writer, _request: &mut <Self::Reader as Reader>::Sample) -> Result<()> {
        Err(Error::unsupported("it has no request and reply"))
    }
}

/// One participant in one domain.
pub trait Context: Send + Sync {
    /// Starts sending and receiving.
    fn enable(&self) -> Result<()> {
        Ok(())
    }
    /// Its effective settings and the transport it claims.
    fn describe(&self) -> Description;
}

/// What any thread may query about an endpoint while another thread uses it.
pub trait Status: Send + Sync {
    /// Its counterparts, as far as this side can tell.
    fn matched(&self) -> Matched {
        Matched::Unknown
    }
    /// Its counters; none for what the middleware can't tell.
    fn counters(&self) -> Counters {
        Counters::default()
    }
    /// Its effective settings.
    fn describe(&self) -> Description {
        Description::default()
    }
    /// Called before a reader is dropped. When this returns, none of its callbacks is running or will run.
    fn close(&self) {}
}

/// The counterparts of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    /// This many, as this side sees it.
    Seen(u32),
    /// This middleware can't tell.
    Unknown,
}

/// The counters of an endpoint; none for what the middleware can't tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent and not received.
    pub lost: Option<u64>,
    /// Not accepted by `commit` or by the reader's queue.
    pub rejected: Option<u64>,
    /// Dropped from a queue for newer ones.
    pub overwritten: Option<u64>,
}

/// Whose memory holds a message that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Origin {
    /// The middleware's own: its content is not copied again.
    Loaned = 1,
    /// A message object of the middleware, which serialises or copies it on commit.
    Native = 2,
    /// The adapter's buffer, which it passes to the middleware.
    Copied = 3,
}

/// A message that is being written.
pub trait Loan: Send {
    /// Whose memory it is.
    fn origin(&self) -> Origin;
    /// Where the payload goes. It does not move until the loan is committed or dropped.
    fn memory(&mut self) -> Memory<'_>;
    /// Where the rest goes, for a payload in two regions.
    fn memory_behind(&mut self) -> Option<Memory<'_>> {
        None
    }
}

/// Memory that C writes to: bytes, or room for them.
#[derive(Debug)]
pub struct Memory<'a> {
    pub(crate) data: *mut u8,
    pub(crate) size: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a mut [u8]> for Memory<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self { data: bytes.as_mut_ptr(), size: bytes.len(), lifetime: PhantomData }
    }
}

impl<'a> From<&'a mut [MaybeUninit<u8>]> for Memory<'a> {
    fn from(room: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { data: room.as_mut_ptr().cast(), size: room.len(), lifetime: PhantomData }
    }
}

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The middleware accepted it.
    Accepted,
    /// There was no room within the time allowed; it is gone.
    Rejected,
}

/// A publisher on a topic. A loan that is dropped is discarded.
pub trait Writer: Send {
    /// A message that is being written.
    type Loan: Loan;
    /// Starts it.
    fn enable(&mut self) -> Result<()> {
        Ok(())
    }
    /// Room for `bytes`, a size that the endpoint's type allows; none if there is no room now.
    fn borrow(&mut self, bytes: usize) -> Result<Option<Self::Loan>>;
    /// Sends it.
    fn commit(&mut self, loan: Self::Loan) -> Result<Sent>;
    /// The layers that it can stamp (`lagometer/stamps.h`); the sidecar also lists them.
    const STAMPED: Layers = Layers::NONE;
    /// From now on it stamps these layers. Called before `enable`.
    fn ask_for_stamps(&mut self, _layers: Layers) {}
    /// Stamps and key of the message committed last; none if nobody requested them.
    fn stamps(&self) -> Option<&Stamps> {
        None
    }
    /// What any thread may query.
    fn status(&self) -> Arc<dyn Status>;
}

/// The content of a received message.
#[derive(Debug, Clone, Copy, Default)]
pub struct View<'a> {
    /// The payload, in order; empty regions at the end are left out.
    pub regions: [&'a [u8]; crate::REGIONS_MAX],
    /// Whether this is the middleware's own memory.
    pub loaned: bool,
    /// The middleware's own number; 0: not known.
    pub sequence: u64,
    /// When the middleware's own thread noticed the message, and on which CPU; 0: not observable.
    pub signalled: Signalled,
}

/// When and where the middleware's own thread noticed a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signalled {
    /// On the host's clock; 0: not observed.
    pub at_ns: i64,
    /// The CPU on which the thread ran.
    pub cpu: u32,
}

impl Signalled {
    /// This thread has noticed it now.
    #[inline]
    pub fn now() -> Self {
        Self { at_ns: crate::now_ns(), cpu: crate::current_cpu() }
    }
}

/// A message that was taken and not released.
pub trait Sample: Send {
    /// Its content; the memory does not move until the sample is released.
    fn view(&self) -> View<'_>;
}

/// A subscriber on a topic.
pub trait Reader: Send {
    /// A message that was taken and not released.
    type Sample: Sample;
    /// Starts it: from now on it receives.
    fn enable(&mut self) -> Result<()> {
        Ok(())
    }
    /// Up to this many messages are about to be taken, one by one. For middleware that is faster if asked for
    /// several at once.
    fn prepare(&mut self, _most: usize) -> Result<()> {
        Ok(())
    }
    /// The next message, if there is one. Never waits.
    fn take(&mut self) -> Result<Option<Self::Sample>>;
    /// As in `Writer`.
    const STAMPED: Layers = Layers::NONE;
    /// As in `Writer`.
    fn ask_for_stamps(&mut self, _layers: Layers) {}
    /// Stamps of the message taken last, and its writer; none if nobody requested them.
    fn stamps(&self) -> Option<&Stamps> {
        None
    }
    /// Releases a message.
    fn release(&mut self, sample: Self::Sample) {
        drop(sample);
    }
    /// What any thread may query.
    fn status(&self) -> Arc<dyn Status>;
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A reader has data, or somebody called `trigger`.
    Ready,
    /// The time has passed.
    TimedOut,
}

/// Ends one wait, the current or the next; any thread may do so.
pub trait Trigger: Send + Sync {
    /// Ends it.
    fn trigger(&self);
}

/// One thread waits on it until one of its readers has data.
pub trait Waitset<Reader>: Send {
    /// Adds a reader, which outlives the waitset.
    fn attach(&mut self, reader: &mut Reader) -> Result<()>;
    /// Waits until host time `until_ns` at the latest. Level-triggered: while data is left untaken, it
    /// returns at once.
    fn wait(&mut self, until_ns: i64) -> Result<Woken>;
    /// The trigger that ends a wait.
    fn trigger(&self) -> Arc<dyn Trigger>;
    /// Whether `is_ready` tells which readers have data; the engine then takes only from those.
    const NAMES_READY: bool = false;
    /// After a wait that ended with `Ready`: whether the reader attached at index `place`, from 0, has data.
    fn is_ready(&self, _place: usize) -> bool {
        true
    }
}
