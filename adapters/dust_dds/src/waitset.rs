// SPDX-License-Identifier: Apache-2.0
//! A waitset: Dust DDS's own, which waits for readers' status conditions, as a future that the adapter runs.
//! It has no condition that a user can trigger.
use std::future::{pending, poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Poll, Waker};

use dust_dds::dds_async::wait_set::{ConditionAsync, WaitSetAsync};
use dust_dds::infrastructure::error::DdsResult;
use lagometer_adapter::{now_ns, Doing, Error, Result, Trigger, Waitset, Woken};

use crate::blocking::{block_on, is_broken, Driven, Sleeper};
use crate::reader::{Awaited, DustReader};

/// Waits for data of readers.
pub(crate) struct DustWaitset {
    sleeper: Sleeper,
    conditions: WaitSetAsync,
    /// The readers whose conditions are attached.
    joined: Vec<Arc<Awaited>>,
    /// The readers that have no condition until they are enabled.
    waiting: Vec<Arc<Awaited>>,
    ended: Arc<Ended>,
}

struct Ended {
    wanted: AtomicBool,
    waker: Waker,
}

impl Trigger for Ended {
    fn trigger(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        self.waker.wake_by_ref();
    }
}

/// How a wait for conditions ended.
enum Attempt {
    Data,
    LookAgain,
    TimedOut,
}

impl DustWaitset {
    pub(crate) fn new() -> Self {
        let sleeper = Sleeper::new();
        let ended = Arc::new(Ended { wanted: AtomicBool::new(false), waker: sleeper.waker() });
        Self { sleeper, conditions: WaitSetAsync::new(), joined: Vec::new(), waiting: Vec::new(), ended }
    }

    /// Attaches the readers that were enabled since.
    fn join(&mut self) -> Result<()> {
        while let Some(place) = self.waiting.iter().position(|reader| reader.condition().is_some()) {
            let reader = self.waiting.swap_remove(place);
            if let Some(condition) = reader.condition() {
                let condition = ConditionAsync::StatusCondition(condition.clone());
                let attached = block_on(self.conditions.attach_condition(condition));
                attached.doing("attaching a status condition")?;
            }
            self.joined.push(reader);
        }
        Ok(())
    }

    fn any_untaken(&self) -> bool {
        self.joined.iter().any(|reader| reader.untaken())
    }

    /// Whether a condition is true now.
    fn any_holds(&self) -> Result<bool> {
        for condition in self.joined.iter().filter_map(|reader| reader.condition()) {
            if block_on(condition.get_trigger_value()).doing("asking a status condition")? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until a condition is true, there is other work to do, or the time has passed.
    fn attempt(&self, until_ns: i64) -> Result<Attempt> {
        let stop = || {
            is_broken()
                || self.ended.wanted.load(Ordering::SeqCst)
                || self.waiting.iter().any(|reader| reader.condition().is_some())
        };
        let Some(condition) = self.joined.first().and_then(|reader| reader.condition()) else {
            // Without conditions the vendor's waitset refuses to wait.
            return Ok(match self.sleeper.drive(pin!(pending::<()>()), until_ns, stop) {
                Driven::Stopped(Woken::TimedOut) => Attempt::TimedOut,
                _ => Attempt::LookAgain,
            });
        };
        let mut waiting = pin!(self.conditions.wait());
        let stopped = match self.sleeper.drive(waiting.as_mut(), until_ns, stop) {
            Driven::Done(holding) => return seen(holding),
            Driven::Stopped(woken) => woken,
        };
        // If a question to Dust DDS's thread were abandoned, its answer would be taken for that to the next
        // one, whoever asks. There is one question at a time: when another one has been answered, this one
        // was not open.
        let mut probe = pin!(condition.get_trigger_value());
        let mut holding = None;
        let both = poll_fn(|context| {
            if holding.is_none() {
                if let Poll::Ready(output) = waiting.as_mut().poll(context) {
                    holding = Some(output);
                }
            }
            probe.as_mut().poll(context)
        });
        let probed = self.sleeper.drive(pin!(both), i64::MAX, is_broken);
        match (holding, probed) {
            (Some(holding), _) => seen(holding),
            (None, Driven::Done(Ok(true))) => Ok(Attempt::Data),
            _ if stopped == Woken::TimedOut => Ok(Attempt::TimedOut),
            _ => Ok(Attempt::LookAgain),
        }
    }
}

fn seen(holding: DdsResult<Vec<ConditionAsync>>) -> Result<Attempt> {
    Ok(if holding.doing("waiting")?.is_empty() { Attempt::LookAgain } else { Attempt::Data })
}

impl Waitset<DustReader> for DustWaitset {
    fn attach(&mut self, reader: &mut DustReader) -> Result<()> {
        self.waiting.push(reader.wait_by(self.sleeper.waker())?);
        Ok(())
    }

    fn wait(&mut self, until_ns: i64) -> Result<Woken> {
        loop {
            if is_broken() {
                return Err(Error::failed("a thread of Dust DDS's panicked before"));
            }
            self.join()?;
            if self.any_untaken() || self.ended.wanted.swap(false, Ordering::SeqCst) {
                return Ok(Woken::Ready);
            }
            if now_ns() >= until_ns {
                return Ok(if self.any_holds()? { Woken::Ready } else { Woken::TimedOut });
            }
            match self.attempt(until_ns)? {
                Attempt::Data => return Ok(Woken::Ready),
                Attempt::TimedOut => return Ok(Woken::TimedOut),
                Attempt::LookAgain => (),
            }
        }
    }

    fn trigger(&self) -> Arc<dyn Trigger> {
        self.ended.clone()
    }
}
