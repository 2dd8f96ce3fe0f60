// SPDX-License-Identifier: Apache-2.0
//! Writers: a Zenoh publisher, with buffers of its own or in shared memory.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use bytes::Bytes;
use lagometer_adapter::{
    Counters, Description, Doing, Endpoint, Error, History, Loan, Matched, Memory, Origin, Result, Sent,
    Status, Writer,
};
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::shm::{GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShmMut};
use zenoh::Wait;

use crate::context::{open_session, SharedSession, ZenohContext};
use crate::settings::Transport;

/// Messages on their way beside those in a reader's queue; the pool of shared memory has room for them.
const UNDER_WAY: usize = 16;
const SHM_POOL_BYTES_MIN: usize = 1 << 20;
/// What a pool needs for each message beside its payload, generously.
const SHM_OVERHEAD_BYTES: usize = 256;

/// A publisher.
pub(crate) struct ZenohWriter {
    publisher: Option<Publisher<'static>>,
    memory: Pool,
    session: SharedSession,
    key: String,
    facts: Arc<WriterStatus>,
}

/// Where messages are written.
enum Pool {
    /// Buffers that are used again once Zenoh, and readers in this process, have let go of them.
    Buffers(Vec<Arc<Vec<u8>>>),
    /// Zenoh's own shared memory.
    Shared(Box<ShmProvider<PosixShmProviderBackend>>),
}

impl ZenohWriter {
    pub(crate) fn new(context: &ZenohContext, endpoint: &Endpoint) -> Result<Self> {
        refuse_transient_local(endpoint)?;
        let settings = context.settings();
        let reliable = endpoint.qos.reliable;
        let by_reliability = match reliable {
            Some(true) => CongestionControl::Block,
            _ => CongestionControl::Drop,
        };
        let facts = WriterStatus {
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
        Ok(Self { publisher: None, memory, session, key, facts: Arc::new(facts) })
    }
}

impl Writer for ZenohWriter {
    type Loan = ZenohLoan;

    fn enable(&mut self) -> Result<()> {
        let publisher = open_session(&self.session)?
            .declare_publisher(self.key.clone())
            .congestion_control(self.facts.congestion_control)
            .express(self.facts.express)
            .reliability(self.facts.reliability)
            .wait()
            .doing(format!("declaring a publisher on '{}'", self.key))?;
        self.publisher = Some(publisher);
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
        let publisher = self.publisher.as_ref().ok_or_else(|| Error::invalid("commit before enable"))?;
        match loan {
            ZenohLoan::Buffer(buffer, bytes) => {
                let payload = Bytes::from_owner(Filled(buffer.clone(), bytes));
                publisher.put(payload).wait().doing("publishing")?;
                if let Pool::Buffers(buffers) = &mut self.memory {
                    buffers.push(buffer);
                }
            }
            ZenohLoan::Shared(memory) => publisher.put(memory).wait().doing("publishing")?,
        }
        Ok(Sent::Accepted)
    }

    fn status(&self) -> Arc<dyn Status> {
        self.facts.clone()
    }
}

/// A buffer that a message is written to.
pub(crate) enum ZenohLoan {
    /// The adapter's, and how much of it the message takes.
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

/// A buffer that Zenoh shares until the last reader in this process has let go of it.
struct Filled(Arc<Vec<u8>>, usize);

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// The oldest buffer that nobody else holds and that is large enough; a new one if there is none.
fn free_buffer(buffers: &mut Vec<Arc<Vec<u8>>>, bytes: usize) -> Arc<Vec<u8>> {
    let free = buffers.iter().position(|buffer| Arc::strong_count(buffer) == 1 && buffer.len() >= bytes);
    let mut buffer = free.map_or_else(|| Arc::new(vec![0; bytes]), |index| buffers.remove(index));
    if Arc::get_mut(&mut buffer).is_none() {
        buffer = Arc::new(vec![0; bytes]);
    }
    buffer
}

/// Room for what a reader queues and what is under way.
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

struct WriterStatus {
    congestion_control: CongestionControl,
    express: bool,
    reliability: Reliability,
    rejected: AtomicU64,
}

impl Status for WriterStatus {
    /// Zenoh tells whether there are subscribers, not how many.
    fn matched(&self) -> Matched {
        Matched::Unknown
    }
    fn counters(&self) -> Counters {
        Counters { rejected: Some(self.rejected.load(Ordering::Relaxed)), ..Counters::default() }
    }
    fn describe(&self) -> Description {
        let word = |control| if control == CongestionControl::Drop { "drop" } else { "block" };
        let best_effort = self.reliability == Reliability::BestEffort;
        Description::default()
            .setting("congestion_control", word(self.congestion_control), "drop")
            .setting("express", self.express, false)
            .setting("reliability", if best_effort { "best_effort" } else { "reliable" }, "reliable")
    }
}
