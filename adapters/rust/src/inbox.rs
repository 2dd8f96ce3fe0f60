// SPDX-License-Identifier: Apache-2.0
//! The queue between a middleware's own thread, which brings messages by a callback, and whoever takes them. It has the
//! history that the study asks for, and each of the three ways to learn that something came.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::{
    now_ns, Bell, Counters, Dispatch, Endpoint, History, OnData, Result, Status, Trigger, Waitset, Woken,
};

/// Nobody calls on_data; somebody does; somebody does and has to call it once more.
const QUIET: u8 = 0;
const CALLING: u8 = 1;
const CALL_AGAIN: u8 = 2;

/// Room that a queue has from the start; one that may hold more grows to it if it has to.
const ROOM_AT_FIRST: usize = 1024;

/// The queue of one reader.
#[derive(Debug)]
pub struct Inbox<T> {
    queue: Mutex<VecDeque<T>>,
    room: Condvar,
    closed: AtomicBool,
    capacity: usize,
    /// How long a full KEEP_ALL queue holds up who brings a message; none: the oldest makes room.
    wait_for_room: Option<Duration>,
    length: AtomicUsize,
    overwritten: AtomicU64,
    refused: AtomicU64,
    on_data: Option<OnData>,
    calling: AtomicU8,
    bell: OnceLock<Arc<Bell>>,
}

impl<T: Send + 'static> Inbox<T> {
    /// For a reader with this history and dispatch. `history`: where the caller left it open; `keep_all_items`: what a
    /// KEEP_ALL queue holds before who brings has to wait, up to the endpoint's blocking time.
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

    /// Brings a message, and tells whoever is to know. [any thread]
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

    /// Nothing is brought, and on_data not called, any more once this returns, calls that run included. Not to be
    /// called in on_data.
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

    /// Calls on_data, unless a call runs already, on another thread or further up on this one: that one is then told
    /// to call again. So calls never overlap and nobody waits.
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

/// What a waitset asks of an inbox, whatever lies in it.
pub trait Fillable: Send + Sync {
    /// Whether there is something to take.
    fn has_data(&self) -> bool;
    /// Who is told from now on.
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

/// A reader whose messages come through an inbox.
pub trait HasInbox {
    /// It.
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
    /// Without any inbox.
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
