// SPDX-License-Identifier: Apache-2.0
//! A waitset: RustDDS's readers are mio event sources, so a mio poll waits for them, as its manual describes.
//! poll(2) on its descriptor adds what mio lacks: timeouts finer than a millisecond.
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use lagometer_adapter::{Doing, Error, Poller, Result, Trigger, Waitset, Woken};
use rustdds::mio1::event::Source;
use rustdds::mio1::{Events, Interest, Poll, Registry, Token};

/// How many readers are reported at once; the next poll reports more.
const EVENTS: usize = 64;

/// Whether a reader may have something to take: set by the waiting thread, or by the reader if it left some.
#[derive(Debug, Clone, Default)]
struct Untaken(Arc<AtomicBool>);

impl Untaken {
    fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
    fn set(&self, untaken: bool) {
        self.0.store(untaken, Ordering::SeqCst);
    }
}

/// What a reader knows about its waitset, if it has one.
#[derive(Debug, Default)]
pub struct Told {
    untaken: Untaken,
    /// What to notify, from the reader's enabling on.
    whom: Option<(Registry, Token)>,
    enabled: bool,
}

impl Told {
    /// The reader is being enabled: from now on arrivals wake its waitset.
    pub fn enable(&mut self, source: &mut dyn Source) -> Result<()> {
        self.enabled = true;
        match &self.whom {
            Some((registry, token)) => source
                .register(registry, *token, Interest::READABLE)
                .doing("registering a reader with a waitset"),
            None => Ok(()),
        }
    }

    /// Whether the reader left something untaken; must also be called, with false, before it looks.
    pub fn set_untaken(&self, untaken: bool) {
        self.untaken.set(untaken);
    }

    fn wait_by(&mut self, registry: Registry, token: Token) -> Result<Untaken> {
        if self.whom.is_some() || self.enabled {
            return Err(Error::invalid("a reader belongs to one waitset, attached before it is enabled"));
        }
        self.whom = Some((registry, token));
        Ok(self.untaken.clone())
    }
}

/// A reader that is an event source.
pub trait Awaited {
    /// What it knows about its waitset.
    fn told(&mut self) -> &mut Told;
}

/// Waits for data of readers.
pub struct MioWaitset {
    poller: Poller,
    place: usize,
    poll: Poll,
    events: Events,
    readers: Vec<Untaken>,
}

impl MioWaitset {
    /// Without readers yet.
    pub fn new() -> Result<Self> {
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
        self.readers.push(reader.told().wait_by(registry, Token(self.readers.len()))?);
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
