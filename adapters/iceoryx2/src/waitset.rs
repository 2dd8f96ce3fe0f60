// SPDX-License-Identifier: Apache-2.0
//! A waitset: poll(2) on the listeners' descriptors, then the listeners are drained, as in iceoryx2's own
//! WaitSet. That one borrows what is attached to it for its lifetime, which an object behind a C handle can't
//! provide.
use std::sync::Arc;

use iceoryx2::port::listener::Listener;
use lagometer_adapter::{Doing, Poller, Result, Trigger, Waitset, Woken};

use crate::context::Service;
use crate::ports::{Exclusive, Iceoryx2Reader, Untaken};

/// Waits for events.
pub(crate) struct Iceoryx2Waitset {
    poller: Poller,
    attached: Vec<Attached>,
}

struct Attached {
    listener: Exclusive<Listener<Service>>,
    place: usize,
    untaken: Untaken,
}

impl Iceoryx2Waitset {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { poller: Poller::new()?, attached: Vec::new() })
    }
}

impl Waitset<Iceoryx2Reader> for Iceoryx2Waitset {
    fn attach(&mut self, reader: &mut Iceoryx2Reader) -> Result<()> {
        let (listener, descriptor, untaken) = reader.wait_by()?;
        let place = self.poller.add(descriptor);
        self.attached.push(Attached { listener, place, untaken });
        Ok(())
    }

    fn wait(&mut self, until_ns: i64) -> Result<Woken> {
        if self.attached.iter().any(|each| each.untaken.get()) {
            return Ok(Woken::Ready);
        }
        let woken = self.poller.wait(until_ns)?;
        if woken == Woken::Ready {
            for each in self.attached.iter().filter(|each| self.poller.is_ready(each.place)) {
                each.listener.try_wait(|_| ()).doing("emptying a listener")?;
                each.untaken.set(true);
            }
        }
        Ok(woken)
    }

    fn trigger(&self) -> Arc<dyn Trigger> {
        self.poller.knock()
    }
}
