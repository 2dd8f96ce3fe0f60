// SPDX-License-Identifier: Apache-2.0
//! What an adapter implements: one type for the middleware, one each for writers, readers and waitsets.
//!
//! Methods that take `&mut self` are never called by two threads at once, but not always by the same thread; hence
//! `Send`. What any thread may ask at any time is asked of a `Status`, which is shared with the object.
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

    /// Whether it has request and reply of its own (`lagometer/services.h`); the sidecar says so as well.
    const SERVICES: bool = false;
    /// Creates a client: the writer of its requests, the reader of the replies to them.
    fn client(
        _context: &Self::Context,
        _request: &Endpoint,
        _reply: &Endpoint,
    ) -> Result<(Self::Writer, Self::Reader)> {
        Err(Error::unsupported("it has no request and reply"))
    }
    /// Creates a server: the writer of its replies, the reader of requests.
    fn server(
        _context: &Self::Context,
        _request: &Endpoint,
        _reply: &Endpoint,
    ) -> Result<(Self::Writer, Self::Reader)> {
        Err(Error::unsupported("it has no request and reply"))
    }
    /// What this server's writer commits next answers this request, which its reader has taken. An error, if it was
    /// answered.
    fn answer(_replies: &mut Self::Writer, _request: &mut <Self::Reader as Reader>::Sample) -> Result<()> {
        Err(Error::unsupported("it has no request and reply"))
    }
}

/// One participant in one domain.
pub trait Context: Send + Sync {
    /// Starts what it needs to hear and be heard.
    fn enable(&self) -> Result<()> {
        Ok(())
    }
    /// Its effective settings and the transport that it claims.
    fn describe(&self) -> Description;
}

/// What may be asked of an endpoint on any thread, while another one uses it.
pub trait Status: Send + Sync {
    /// Its counterparts, as far as this side can tell.
    fn matched(&self) -> Matched {
        Matched::Unknown
    }
    /// What it counted; none for what the middleware can't tell.
    fn counters(&self) -> Counters {
        Counters::default()
    }
    /// Its effective settings.
    fn describe(&self) -> Description {
        Description::default()
    }
    /// Called before a reader is dropped. When this returns, none of its callbacks runs or will run.
    fn close(&self) {}
}

/// The counterparts of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    /// So many, as this side sees it.
    Seen(u32),
    /// This middleware can't tell.
    Unknown,
}

/// What an endpoint counted; none for what the middleware can't tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent and not received.
    pub lost: Option<u64>,
    /// Not accepted by `commit` or by the reader's queue.
    pub rejected: Option<u64>,
    /// Pushed out of a queue by newer ones.
    pub overwritten: Option<u64>,
}

/// Whose memory a message is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Origin {
    /// The middleware's own: what is written there is not copied again.
    Loaned = 1,
    /// A message object of the middleware; it serialises or copies on commit.
    Native = 2,
    /// The adapter's buffer, which it hands to the middleware.
    Copied = 3,
}

/// A message that is being written.
pub trait Loan: Send {
    /// Whose memory it is.
    fn origin(&self) -> Origin;
    /// Where the payload goes. It stays where it is until the loan is committed or dropped.
    fn memory(&mut self) -> Memory<'_>;
    /// Where the rest of it goes, of a payload that lies in two places.
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

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
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
    /// Room for `bytes`, which the endpoint's type allows; none if there is no room now.
    fn borrow(&mut self, bytes: usize) -> Result<Option<Self::Loan>>;
    /// Sends it.
    fn commit(&mut self, loan: Self::Loan) -> Result<Sent>;
    /// The layers that it can stamp (`lagometer/stamps.h`); the sidecar lists them as well.
    const STAMPED: Layers = Layers::NONE;
    /// From now on it stamps these of its layers. Before `enable`.
    fn ask_for_stamps(&mut self, _layers: Layers) {}
    /// Stamps and key of the message that was committed last; none where nobody asked.
    fn stamps(&self) -> Option<&Stamps> {
        None
    }
    /// What any thread may ask.
    fn status(&self) -> Arc<dyn Status>;
}

/// What a received message shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct View<'a> {
    /// The payload, in order; empty ones at the end are left out.
    pub regions: [&'a [u8]; crate::REGIONS_MAX],
    /// Whether this is the middleware's own memory.
    pub loaned: bool,
    /// The middleware's own number; 0: not known.
    pub sequence: u64,
    /// When the middleware's own thread noticed the message, and on which CPU; 0: it can't be observed.
    pub signalled: Signalled,
}

/// When and where the middleware's own thread noticed a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signalled {
    /// On the host's clock; 0: not observed.
    pub at_ns: i64,
    /// The CPU that the thread ran on.
    pub cpu: u32,
}

impl Signalled {
    /// This thread notices it now.
    #[inline]
    pub fn now() -> Self {
        Self { at_ns: crate::now_ns(), cpu: crate::current_cpu() }
    }
}

/// A message that was taken and not released.
pub trait Sample: Send {
    /// What it shows; the memory stays where it is until the sample is released.
    fn view(&self) -> View<'_>;
}

/// A subscriber on a topic.
pub trait Reader: Send {
    /// A message that was taken and not released.
    type Sample: Sample;
    /// Starts it: from now on it hears.
    fn enable(&mut self) -> Result<()> {
        Ok(())
    }
    /// So many messages are about to be taken, one by one. For a middleware that is better asked for several at once.
    fn prepare(&mut self, _most: usize) -> Result<()> {
        Ok(())
    }
    /// The next message, if there is one. Never waits.
    fn take(&mut self) -> Result<Option<Self::Sample>>;
    /// As a writer's.
    const STAMPED: Layers = Layers::NONE;
    /// As of a writer.
    fn ask_for_stamps(&mut self, _layers: Layers) {}
    /// Stamps of the message that was taken last, and its writer; none where nobody asked.
    fn stamps(&self) -> Option<&Stamps> {
        None
    }
    /// Gives a message back.
    fn release(&mut self, sample: Self::Sample) {
        drop(sample);
    }
    /// What any thread may ask.
    fn status(&self) -> Arc<dyn Status>;
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A reader has data, or somebody called `trigger`.
    Ready,
    /// The time is up.
    TimedOut,
}

/// Ends one wait, present or next; any thread may.
pub trait Trigger: Send + Sync {
    /// Ends it.
    fn trigger(&self);
}

/// What one thread waits on until one of its readers has data.
pub trait Waitset<Reader>: Send {
    /// Adds a reader; it lives longer than the waitset.
    fn attach(&mut self, reader: &mut Reader) -> Result<()>;
    /// Waits until host time `until_ns` at the latest. Level-triggered: with data left untaken it returns at once.
    fn wait(&mut self, until_ns: i64) -> Result<Woken>;
    /// What ends a wait.
    fn trigger(&self) -> Arc<dyn Trigger>;
    /// Whether `is_ready` tells the readers with data from the others; the engine then takes from those alone.
    const NAMES_READY: bool = false;
    /// After a wait that ended with `Ready`: whether the reader that was attached as number `place`, from 0 on, has
    /// data.
    fn is_ready(&self, _place: usize) -> bool {
        true
    }
}
