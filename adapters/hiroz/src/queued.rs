// SPDX-License-Identifier: Apache-2.0
//! What a waitset and a poll need from the vendor's own queue of a subscription, a client or a server.
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{Bell, Fillable};

/// Whether the queue has something, once it exists, and what arrivals wake.
#[derive(Default)]
pub(crate) struct Queued {
    has_data: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    bell: OnceLock<Arc<Bell>>,
}

impl Queued {
    /// Sets how to check whether there is something to take.
    pub(crate) fn asks(&self, has_data: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.has_data.set(Box::new(has_data));
    }

    /// Something arrived. [Zenoh's thread]
    pub(crate) fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }
}

impl Fillable for Queued {
    fn has_data(&self) -> bool {
        self.has_data.get().is_some_and(|has_data| has_data())
    }
    fn tell(&self, bell: Arc<Bell>) {
        let _ = self.bell.set(bell);
    }
}
