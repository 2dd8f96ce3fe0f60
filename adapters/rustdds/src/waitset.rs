// SPDX-License-Identifier: Apache-2.0
//! A waitset: RustDDS's readers are event sources of mio, so a poll of mio's waits for them, as its manual has it. poll(2)
//! on its descriptor adds what mio lacks: times finer than a millisecond. Whoever stands on RustDDS has the same.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use lagometer_adapter::{Doing, Poller, Result, Trigger, Waitset, Woken};
use rustdds::mio1::{Events, Poll, Registry, Token};
use std::os::fd::AsRawFd;

/// Readers that are told of at once; more are told of by the next look.
const EVENTS: usize = 64;

/// Whether a reader may have something to take: set by whoever waits for it, or by the reader, which left some.
#[derive(Debug, Clone, Default)]
pub(crate) struct Untaken(Arc<AtomicBool>);

impl Untaken {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
    pub(crate) fn set(&self, untaken: bool) {
        self.0.store(untaken, Ordering::SeqCst);
    }
}

/// A reader that is an event source.
pub(crate) trait Awaited {
    /// Has whoever waits at this registry told of what comes.
    fn wait_by(&mut self, registry: Registry, token: Token) -> Result<Untaken>;
}

/// Waits for data of readers.
pub(crate) struct MioWaitset {
    poller: Poller,
    place: usize,
    poll: Poll,
    events: Events,
    readers: Vec<Untaken>,
}

impl MioWaitset {
    pub(crate) fn new() -> Result<Self> {
        let poll = Poll::new().doing("making mio's poll")?;
        let mut poller = Poller::new()?;
        let place = poller.add(poll.as_raw_fd());
        Ok(Self { poller, place, poll, events: Events::with_capacity(EVENTS), readers: Vec::new() })
    }

    fn any_untaken(&self) -> bool {
        self.readers.iter().any(Untaken::get)
    }
}

impl<R: Awaited> Waitset<R> for MioWaitset {
    fn attach(&mut self, reader: &mut R) -> Result<()> {
        let registry = self.poll.registry().try_clone().doing("sharing mio's registry")?;
        self.readers.push(reader.wait_by(registry, Token(self.readers.len()))?);
        Ok(())
    }

    fn wait(&mut self, until_ns: i64) -> Result<Woken> {
        loop {
            if self.any_untaken() {
                return Ok(Woken::Ready);
            }
            if self.poller.wait(until_ns)? == Woken::TimedOut {
                return Ok(Woken::TimedOut);
            }
            if self.poller.is_ready(self.place) {
                self.poll.poll(&mut self.events, Some(Duration::ZERO)).doing("asking mio's poll")?;
                for event in &self.events {
                    self.readers[event.token().0].set(true);
                }
            }
            if self.poller.was_knocked() {
                return Ok(Woken::Ready);
            }
        }
    }

    fn trigger(&self) -> Arc<dyn Trigger> {
        self.poller.knock()
    }
}
