// SPDX-License-Identifier: Apache-2.0
//! What a waitset and a poll ask of the vendor's own queue of a subscription.
use std::sync::{Arc, OnceLock};

use hiroz::queue::BoundedQueue;
use lagometer_adapter::{Bell, Fillable};
use zenoh::sample::Sample;

/// The queue, once the subscription is there, and what arrivals wake.
#[derive(Default)]
pub(crate) struct Queued {
    pub(crate) queue: OnceLock<Arc<BoundedQueue<Sample>>>,
    bell: OnceLock<Arc<Bell>>,
}

impl Queued {
    /// Something came. [Zenoh's thread]
    pub(crate) fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }
}

impl Fillable for Queued {
    fn has_data(&self) -> bool {
        self.queue.get().is_some_and(|queue| !queue.is_empty())
    }
    fn tell(&self, bell: Arc<Bell>) {
        let _ = self.bell.set(bell);
    }
}
