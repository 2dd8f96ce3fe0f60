// SPDX-License-Identifier: Apache-2.0
//! The queue between the middleware's own thread, which delivers messages by a callback, and the thread that
//! takes them. It keeps the history that the study asks for and supports all three dispatches.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::{
    now_ns, Bell, Counters, Dispatch, Endpoint, History, OnData, Result, Status, Trigger, Waitset, Woken,
};

/// Nobody is calling on_data; a thread is; a thread is and must call it once more.
const QUIET: u8 = 0;
const CALLING: u8 = 1;
const CALL_AGAIN: u8 = 2;

/// The initial capacity of a queue; it grows if it may hold more and needs to.
const ROOM_AT_FIRST: usize = 1024;

/// The queue of one reader.
#[derive(Debug)]
pub struct Inbox<T> {
    queue: Mutex<VecDeque<T>>,
    room: Condvar,
    closed: AtomicBool,
    capacity: usize,
    /// How long a full KEEP_ALL queue blocks the delivering thread. None: the oldest message makes room.
    wait_for_room: Option<Duration>,
    length: AtomicUsize,
    overwritten: AtomicU64,
    refused: AtomicU64,
    on_data: Option<OnData>,
    calling: AtomicU8,
    bell: OnceLock<Arc<Bell>>,
}

impl<T: Send + 'static> Inbox<T> {
    /// An inbox for a reader with this history and dispatch. `history` applies if the caller left it open.
    /// `keep_all_items` is what a KEEP_ALL queue holds before the delivering thread must wait, up to the
    /// endpoint's blocking time.
    pub fn new(endpoint: &Endpoint, history: History, keep_all_items: usize) -> Arc<Self> {
        let (capacity, wait_for_room) = match endpoint.qos.history.unwrap_or(history) {
            History::KeepLast(depth) => (depth, None),
            History::KeepAll => (keep_all_items, Some(endpoint.qos.blocking_max)),
        };
        Arc::new(Self {
            queue: Mutex::new(VecDeque::with_capacity(capacity.min(ROOM_AT_FIRST))),
            room: Condvar::new(),
            closed: AtomicBool::new(false),
            capacity,
            wait_for_room,
            length: AtomicUsize::new(0),
            overwritten: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            on_data: endpoint.on_data.filter(|_| endpoint.dispatch == Dispatch::Listener),
            calling: AtomicU8::new(QUIET),
            bell: OnceLock::new(),
        })
    }

    /// Delivers a message and notifies the reader. [any thread]
    pub fn push(&self, item: T) {
        let mut queue = self.locked();
        if queue.len() >= self.capacity {
            match self.wait_for_room {
                None => {
                    queue.pop_front();
                    self.overwritten.fetch_add(1, Ordering::Relaxed);
                }
                Some(longest) => {
                    queue = self.waited(queue, longest);
                    if queue.len() >= self.capacity {
                        self.refused.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            }
        }
        if self.closed.load(Ordering::SeqCst) {
            return;
        }
        queue.push_back(item);
        self.length.store(queue.len(), Ordering::SeqCst);
        drop(queue);
        if let Some(on_data) = self.on_data {
            self.announce(on_data);
        } else if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }

    /// The oldest message. [one thread at a time]
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.locked();
        let item = queue.pop_front();
        self.length.store(queue.len(), Ordering::SeqCst);
        drop(queue);
        if self.wait_for_room.is_some() {
            self.room.notify_one();
        }
        item
    }

    /// Whether there is nothing to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    /// When this returns, nothing is delivered and on_data is not called any more, and running calls have
    /// ended. Must not be called in on_data.
    pub fn close(&self) {
        let mut queue = self.locked();
        self.closed.store(true, Ordering::SeqCst);
        queue.clear();
        self.length.store(0, Ordering::SeqCst);
        drop(queue);
        self.room.notify_all();
        while self.calling.load(Ordering::SeqCst) != QUIET {
            std::thread::yield_now();
        }
    }

    /// Calls on_data, unless a call is already running on another thread or further up this one's stack: that
    /// caller then calls it again. So calls never overlap and nobody waits.
    fn announce(&self, on_data: OnData) {
        if self.calling.swap(CALL_AGAIN, Ordering::SeqCst) != QUIET {
            return;
        }
        loop {
            self.calling.store(CALLING, Ordering::SeqCst);
            if !self.closed.load(Ordering::SeqCst) {
                on_data.call();
            }
            if self.calling.compare_exchange(CALLING, QUIET, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
        }
    }

    fn waited<'a>(
        &self,
        mut queue: MutexGuard<'a, VecDeque<T>>,
        longest: Duration,
    ) -> MutexGuard<'a, VecDeque<T>> {
        let until = Instant::now() + longest;
        while queue.len() >= self.capacity && !self.closed.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue = self.room.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        queue
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Status for Inbox<T> {
    fn counters(&self) -> Counters {
        Counters {
            lost: None,
            rejected: Some(self.refused.load(Ordering::Relaxed)),
            overwritten: Some(self.overwritten.load(Ordering::Relaxed)),
        }
    }
    fn close(&self) {
        Inbox::close(self);
    }
}

/// What a waitset needs from an inbox, whatever its items are.
pub trait Fillable: Send + Sync {
    /// Whether there is something to take.
    fn has_data(&self) -> bool;
    /// Sets the bell to ring from now on.
    fn tell(&self, bell: Arc<Bell>);
}

impl<T: Send + 'static> Fillable for Inbox<T> {
    fn has_data(&self) -> bool {
        !self.is_empty()
    }
    fn tell(&self, bell: Arc<Bell>) {
        let _ = self.bell.set(bell);
    }
}

/// A reader that gets its messages through an inbox.
pub trait HasInbox {
    /// The inbox.
    fn inbox(&self) -> Arc<dyn Fillable>;
}

/// Waits for inboxes.
#[derive(Default)]
pub struct InboxWaitset {
    bell: Arc<Bell>,
    ended: Arc<Ended>,
    inboxes: Vec<Arc<dyn Fillable>>,
}

#[derive(Debug, Default)]
struct Ended {
    bell: OnceLock<Arc<Bell>>,
    wanted: AtomicBool,
}

impl Trigger for Ended {
    fn trigger(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }
}

impl InboxWaitset {
    /// A waitset without inboxes.
    pub fn new() -> Self {
        let waitset = Self::default();
        let _ = waitset.ended.bell.set(waitset.bell.clone());
        waitset
    }
}

impl<Reader: HasInbox> Waitset<Reader> for InboxWaitset {
    fn attach(&mut self, reader: &mut Reader) -> Result<()> {
        let inbox = reader.inbox();
        inbox.tell(self.bell.clone());
        self.inboxes.push(inbox);
        Ok(())
    }

    fn wait(&mut self, until_ns: i64) -> Result<Woken> {
        loop {
            let seen = self.bell.rings();
            let ready = self.inboxes.iter().any(|inbox| inbox.has_data());
            if ready || self.ended.wanted.swap(false, Ordering::SeqCst) {
                return Ok(Woken::Ready);
            }
            if now_ns() >= until_ns {
                return Ok(Woken::TimedOut);
            }
            self.bell.sleep(seen, until_ns);
        }
    }

    fn trigger(&self) -> Arc<dyn Trigger> {
        self.ended.clone()
    }

    const NAMES_READY: bool = true;
    fn is_ready(&self, place: usize) -> bool {
        self.inboxes[place].has_data()
    }
}
