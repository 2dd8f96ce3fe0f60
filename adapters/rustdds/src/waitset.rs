// SPDX-License-Identifier: Apache-2.0
//! A waitset: RustDDS's readers are event sources of mio, so a poll of mio's waits for them, as its manual has it. poll(2)
//! on its descriptor adds what mio lacks: times finer than a millisecond.
use std::sync::Arc;
use std::time::Duration;

use lagometer_adapter::{Doing, Poller, Result, Trigger, Waitset, Woken};
use rustdds::mio1::{Events, Poll, Token};
use std::os::fd::AsRawFd;

use crate::reader::{RustDdsReader, Untaken};

/// Readers that are told of at once; more are told of by the next look.
const EVENTS: usize = 64;

/// Waits for data of readers.
pub(crate) struct RustDdsWaitset {
    poller: Poller,
    place: usize,
    poll: Poll,
    events: Events,
    readers: Vec<Untaken>,
}

impl RustDdsWaitset {
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

impl Waitset<RustDdsReader> for RustDdsWaitset {
    fn attach(&mut self, reader: &mut RustDdsReader) -> Result<()> {
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
