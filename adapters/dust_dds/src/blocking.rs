// SPDX-License-Identifier: Apache-2.0
//! Runs Dust DDS's futures on the calling thread, as its own interface without futures does. That interface
//! is not used because only time ends a wait there.
//!
//! The answers come from one of Dust DDS's threads. If that thread panics there are no answers and the
//! results are useless: the trial fails, and nobody waits any more.
use std::future::Future;
use std::panic;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Wake, Waker};

use dust_dds::infrastructure::error::{DdsError, DdsResult};
use lagometer_adapter::{fail, now_ns, Bell, Woken};

/// How long a sleeping thread may miss a panic elsewhere.
const LOOK_AGAIN_NS: i64 = 1_000_000_000;

/// Set by the first panic on any thread that runs code of this library.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// From now on, a panic on any thread of this library fails the trial.
pub(crate) fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            BROKEN.store(true, Ordering::SeqCst);
            let thread = std::thread::current();
            fail(&format!("dust_dds: thread '{}': {panic}", thread.name().unwrap_or("unnamed")));
            usual(panic);
        }));
    });
}

/// Whether any code of this library panicked.
pub(crate) fn is_broken() -> bool {
    BROKEN.load(Ordering::SeqCst)
}

/// Wakes the thread that waits for a future.
#[derive(Debug, Default)]
struct Alarm(Bell);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.ring();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.ring();
    }
}

/// How a thread sleeps until a future makes progress, or until another thread wakes it.
#[derive(Debug)]
pub(crate) struct Sleeper {
    alarm: Arc<Alarm>,
    waker: Waker,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        let alarm = Arc::<Alarm>::default();
        Self { waker: alarm.clone().into(), alarm }
    }

    /// Wakes it from another thread.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Polls the future repeatedly, asleep in between, until it has an output, `stop` says so (no output) or
    /// the host's time has passed.
    pub(crate) fn drive<F: Future>(
        &self,
        mut future: Pin<&mut F>,
        until_ns: i64,
        stop: impl Fn() -> bool,
    ) -> Driven<F::Output> {
        let mut context = Context::from_waker(&self.waker);
        loop {
            let seen = self.alarm.0.rings();
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Driven::Done(output);
            }
            if stop() {
                return Driven::Stopped(Woken::Ready);
            }
            if until_ns != i64::MAX && now_ns() >= until_ns {
                return Driven::Stopped(Woken::TimedOut);
            }
            self.alarm.0.sleep(seen, until_ns.min(now_ns() + LOOK_AGAIN_NS));
        }
    }
}

/// How far a future got.
pub(crate) enum Driven<T> {
    /// To its end.
    Done(T),
    /// No output: somebody stopped it, or the time has passed.
    Stopped(Woken),
}

/// Waits for a future's output.
pub(crate) fn block_on<T>(future: impl Future<Output = DdsResult<T>>) -> DdsResult<T> {
    match Sleeper::new().drive(pin!(future), i64::MAX, is_broken) {
        Driven::Done(output) => output,
        Driven::Stopped(_) => Err(DdsError::Error("a thread of Dust DDS's panicked before".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};

    use super::*;

    #[test]
    fn a_future_that_is_woken_by_another_thread_ends() {
        let mut asked = 0;
        let mut future = pin!(poll_fn(|context| {
            asked += 1;
            if asked == 2 {
                return Poll::Ready(asked);
            }
            let waker = context.waker().clone();
            std::thread::spawn(move || waker.wake());
            Poll::Pending
        }));
        let driven = Sleeper::new().drive(future.as_mut(), i64::MAX, || false);
        assert!(matches!(driven, Driven::Done(2)));
    }

    #[test]
    fn a_panic_on_another_thread_leaves_nobody_waiting() {
        watch_for_panics();
        std::thread::spawn(|| panic!("on purpose")).join().unwrap_err();
        assert!(is_broken());
        assert!(block_on(pending::<DdsResult<()>>()).is_err());
    }

    #[test]
    fn a_future_that_never_ends_is_given_up() {
        let sleeper = Sleeper::new();
        let mut future = pin!(pending::<()>());
        let stopped = sleeper.drive(future.as_mut(), i64::MAX, || true);
        assert!(matches!(stopped, Driven::Stopped(Woken::Ready)));
        let late = sleeper.drive(future.as_mut(), 0, || false);
        assert!(matches!(late, Driven::Stopped(Woken::TimedOut)));
    }

    #[test]
    fn an_output_comes_before_the_end_of_time() {
        let sleeper = Sleeper::new();
        let mut future = pin!(ready(7));
        assert!(matches!(sleeper.drive(future.as_mut(), 0, || true), Driven::Done(7)));
    }
}
