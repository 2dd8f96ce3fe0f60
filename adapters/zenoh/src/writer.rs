// SPDX-License-Identifier: Apache-2.0
//! Writers: a Zenoh publisher, with its own buffers or in shared memory; for a client a querier, for a server
//! the queries that it answers.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use bytes::Bytes;
use lagometer_adapter::{
    Counters, Description, Doing, Endpoint, Error, History, Loan, Matched, Memory, Origin, Result, Sent,
    Status, Writer,
};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::query::{ConsolidationMode, Querier, Query};
use zenoh::shm::{GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShmMut};
use zenoh::Wait;

use crate::context::{open_session, SharedSession, ZenohContext};
use crate::reader::{Replies, ZenohReader};
use crate::settings::Transport;

/// Messages in flight in addition to those in a reader's queue; the shared memory pool has room for them.
const UNDER_WAY: usize = 16;
const SHM_POOL_BYTES_MIN: usize = 1 << 20;
/// What a pool needs for each message in addition to its payload, generously.
const SHM_OVERHEAD_BYTES: usize = 256;

/// A publisher.
pub(crate) struct ZenohWriter {
    outlet: Outlet,
    memory: Pool,
    session: SharedSession,
    key: String,
    facts: Arc<WriterStatus>,
}

/// What messages are sent through.
enum Outlet {
    Publisher(Option<Publisher<'static>>),
    /// A client's, and where replies go.
    Querier(Option<Querier<'static>>, Replies),
    /// A server's: the query to answer next.
    Answer(Option<Query>),
}

/// Where messages are written.
enum Pool {
    /// Buffers that are reused once Zenoh, and readers in this process, have released them.
    Buffers(Vec<Arc<Vec<u8>>>),
    /// Zenoh's own shared memory.
    Shared(Box<ShmProvider<PosixShmProviderBackend>>),
}

impl ZenohWriter {
    pub(crate) fn new(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        Self::with(context, endpoint, Outlet::Publisher(None))
    }

    /// A client's.
    pub(crate) fn of_requests(
        context: &ZenohContext,
        endpoint: &Endpoint,
        replies: &ZenohReader,
    ) -> Result<Self> {
        Self::with(context, endpoint, Outlet::Querier(None, replies.replies()))
    }

    /// A server's.
    pub(crate) fn of_replies(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        Self::with(context, endpoint, Outlet::Answer(None))
    }

    /// The next committed message goes to the sender of this query.
    pub(crate) fn answer(&mut self, query: Query) -> Result<()> {
        match &mut self.outlet {
            Outlet::Answer(next) => *next = Some(query),
            _ => return Err(Error::invalid("only a server's writer can answer")),
        }
        Ok(())
    }

    fn with(context: &ZenohContext, endpoint: &Endpoint, outlet: Outlet) -> Result<Self> {
        refuse_transient_local(endpoint)?;
        let settings = context.settings();
        let reliable = endpoint.qos.reliable;
        let by_reliability = match reliable {
            Some(true) => CongestionControl::Block,
            _ => CongestionControl::Drop,
        };
        let facts = WriterStatus {
            role: match outlet {
                Outlet::Publisher(_) => Role::Publisher,
                Outlet::Querier(..) => Role::Client,
                Outlet::Answer(_) => Role::Server,
            },
            congestion_control: settings.congestion_control.unwrap_or(by_reliability),
            express: settings.express,
            reliability: if reliable == Some(false) {
                Reliability::BestEffort
            } else {
                Reliability::Reliable
            },
            rejected: AtomicU64::new(0),
        };
        let memory = match settings.transport {
            Transport::SharedMemory => {
                let bytes = settings.shm_pool_bytes.unwrap_or_else(|| pool_bytes(endpoint));
                let provider = ShmProviderBuilder::default_backend(bytes).wait();
                Pool::Shared(Box::new(
                    provider.doing(format!("making a pool of {bytes} B in shared memory"))?,
                ))
            }
            _ => Pool::Buffers(Vec::new()),
        };
        let (session, key) = (context.session(), context.key(endpoint));
        Ok(Self { outlet, memory, session, key, facts: Arc::new(facts) })
    }
}

impl Writer for ZenohWriter {
    type Loan = ZenohLoan;

    fn enable(&mut self) -> Result<()> {
        let session = open_session(&self.session)?;
        match &mut self.outlet {
            Outlet::Publisher(publisher) => {
                let declared = session
                    .declare_publisher(self.key.clone())
                    .congestion_control(self.facts.congestion_control)
                    .express(self.facts.express)
                    .reliability(self.facts.reliability)
                    .wait();
                *publisher = Some(declared.doing(format!("declaring a publisher on '{}'", self.key))?);
            }
            Outlet::Querier(querier, _) => {
                let declared = session
                    .declare_querier(self.key.clone())
                    .congestion_control(self.facts.congestion_control)
                    .express(self.facts.express)
                    // Otherwise a reply would wait for the end of its query.
                    .consolidation(ConsolidationMode::None)
                    .wait();
                *querier = Some(declared.doing(format!("declaring a querier on '{}'", self.key))?);
            }
            Outlet::Answer(_) => {}
        }
        Ok(())
    }

    fn borrow(&mut self, bytes: usize) -> Result<Option<ZenohLoan>> {
        match &mut self.memory {
            Pool::Buffers(buffers) => Ok(Some(ZenohLoan::Buffer(free_buffer(buffers, bytes), bytes))),
            Pool::Shared(provider) => {
                let size = NonZeroUsize::new(bytes).ok_or_else(|| Error::invalid("an empty message"))?;
                match provider.alloc(size).with_policy::<GarbageCollect>().wait() {
                    Ok(memory) => Ok(Some(ZenohLoan::Shared(memory))),
                    Err(_) => {
                        self.facts.rejected.fetch_add(1, Ordering::Relaxed);
                        Ok(None)
                    }
                }
            }
        }
    }

    fn commit(&mut self, loan: ZenohLoan) -> Result<Sent> {
        match loan {
            ZenohLoan::Buffer(buffer, bytes) => {
                self.send(Bytes::from_owner(Filled(buffer.clone(), bytes)))?;
                if let Pool::Buffers(buffers) = &mut self.memory {
                    buffers.push(buffer);
                }
            }
            ZenohLoan::Shared(memory) => self.send(memory)?,
        }
        Ok(Sent::Accepted)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

impl ZenohWriter {
    fn send(&mut self, payload: impl Into<ZBytes>) -> Result<()> {
        let disabled = || Error::invalid("commit before enable");
        match &mut self.outlet {
            Outlet::Publisher(publisher) => {
                publisher.as_ref().ok_or_else(disabled)?.put(payload).wait().doing("publishing")
            }
            Outlet::Querier(querier, replies) => {
                let query = querier.as_ref().ok_or_else(disabled)?.get().payload(payload);
                let replies = replies.clone();
                query.callback(move |reply| replies.note(reply)).wait().doing("asking")
            }
            Outlet::Answer(query) => {
                let query = query.take().ok_or_else(|| Error::invalid("a reply without a request"))?;
                let reply = query.reply(query.key_expr().clone(), payload).express(self.facts.express);
                reply.wait().doing("replying")
            }
        }
    }
}

/// A buffer to write a message to.
pub(crate) enum ZenohLoan {
    /// The adapter's, and how much of it the message uses.
    Buffer(Arc<Vec<u8>>, usize),
    /// Zenoh's shared memory.
    Shared(ZShmMut),
}

impl Loan for ZenohLoan {
    fn origin(&self) -> Origin {
        match self {
            Self::Buffer(..) => Origin::Copied,
            Self::Shared(_) => Origin::Loaned,
        }
    }
    fn memory(&mut self) -> Memory<'_> {
        match self {
            Self::Buffer(buffer, bytes) => {
                let buffer = Arc::get_mut(buffer).expect("a free buffer has one owner");
                (&mut buffer[..*bytes]).into()
            }
            Self::Shared(memory) => (&mut memory[..]).into(),
        }
    }
}

/// A buffer that Zenoh shares until the last reader in this process has released it.
struct Filled(Arc<Vec<u8>>, usize);

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// The oldest buffer that is large enough and that nobody else holds; a new one if there is none.
fn free_buffer(buffers: &mut Vec<Arc<Vec<u8>>>, bytes: usize) -> Arc<Vec<u8>> {
    let free = buffers.iter().position(|buffer| Arc::strong_count(buffer) == 1 && buffer.len() >= bytes);
    let mut buffer = free.map_or_else(|| Arc::new(vec![0; bytes]), |index| buffers.remove(index));
    if Arc::get_mut(&mut buffer).is_none() {
        buffer = Arc::new(vec![0; bytes]);
    }
    buffer
}

/// Room for messages in a reader's queue and in flight.
fn pool_bytes(endpoint: &Endpoint) -> usize {
    let depth = match endpoint.qos.history {
        Some(History::KeepLast(depth)) => depth,
        _ => UNDER_WAY,
    };
    let each = (endpoint.payload.bytes_max + SHM_OVERHEAD_BYTES).next_multiple_of(SHM_OVERHEAD_BYTES);
    (each * (depth + UNDER_WAY)).max(SHM_POOL_BYTES_MIN)
}

/// Zenoh keeps nothing for late subscribers without its advanced publishers.
pub(crate) fn refuse_transient_local(endpoint: &Endpoint) -> Result<()> {
    if endpoint.qos.transient_local == Some(true) {
        let why = "a plain publisher keeps nothing for late readers; ask for durability volatile";
        return Err(Error::unsupported(format!("topic '{}': {why}", endpoint.topic)));
    }
    Ok(())
}

enum Role {
    Publisher,
    Client,
    Server,
}

struct WriterStatus {
    role: Role,
    congestion_control: CongestionControl,
    express: bool,
    reliability: Reliability,
    rejected: AtomicU64,
}

impl Status for WriterStatus {
    /// Zenoh reports whether there are subscribers, not how many.
    fn matched(&self) -> Matched {
        Matched::Unknown
    }
    fn counters(&self) -> Counters {
        Counters { rejected: Some(self.rejected.load(Ordering::Relaxed)), ..Counters::default() }
    }
    fn describe(&self) -> Description {
        let word = |control| if control == CongestionControl::Drop { "drop" } else { "block" };
        let best_effort = self.reliability == Reliability::BestEffort;
        let description = Description::default().setting("express", self.express, false);
        match self.role {
            Role::Publisher => description
                .setting("congestion_control", word(self.congestion_control), "drop")
                .setting("reliability", if best_effort { "best_effort" } else { "reliable" }, "reliable"),
            Role::Client => description
                .setting("congestion_control", word(self.congestion_control), "block")
                .setting("consolidation", "none", "auto"),
            Role::Server => description, // in congestion a reply behaves like its query
        }
    }
}
