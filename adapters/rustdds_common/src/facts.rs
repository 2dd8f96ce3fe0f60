// SPDX-License-Identifier: Apache-2.0
//! What an endpoint can report at any time, whatever it is doing.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use lagometer_adapter::{Counters, Description, Dispatch, Endpoint, Error, Matched, Result, Status};
use rustdds::GUID;

use crate::participant::{Participant, SharedParticipant};

/// Facts about a writer or a reader. They are dropped after the endpoint itself, and its matches are then
/// forgotten.
pub struct Facts {
    participant: SharedParticipant,
    guid: OnceLock<GUID>,
    description: Description,
    /// Writers only.
    rejected: Option<AtomicU64>,
}

impl Facts {
    /// For a writer, which counts what it had to reject.
    pub fn of_writer(participant: SharedParticipant, description: Description) -> Self {
        Self::new(participant, description, Some(AtomicU64::new(0)))
    }

    /// For a reader.
    pub fn of_reader(participant: SharedParticipant, description: Description) -> Self {
        Self::new(participant, description, None)
    }

    fn new(participant: SharedParticipant, description: Description, rejected: Option<AtomicU64>) -> Self {
        Self { participant, guid: OnceLock::new(), description, rejected }
    }

    /// The participant of the endpoint, which is being enabled.
    pub fn participant(&self) -> Result<&Participant> {
        Participant::of(&self.participant)
    }

    /// The endpoint exists, and this identifies it to others.
    pub fn enabled_as(&self, guid: GUID) {
        let _ = self.guid.set(guid);
    }

    /// A message found no room.
    pub fn note_rejected(&self) {
        if let Some(rejected) = &self.rejected {
            rejected.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Facts {
    fn drop(&mut self) {
        if let (Some(participant), Some(guid)) = (self.participant.get(), self.guid.get()) {
            participant.acquaintances().forget(*guid);
        }
    }
}

impl Status for Facts {
    fn matched(&self) -> Matched {
        Matched::Seen(match (self.participant.get(), self.guid.get()) {
            (Some(participant), Some(guid)) => participant.acquaintances().count(*guid),
            _ => 0,
        })
    }
    fn counters(&self) -> Counters {
        let rejected = self.rejected.as_ref().map(|rejected| rejected.load(Ordering::Relaxed));
        Counters { rejected, ..Counters::default() }
    }
    fn describe(&self) -> Description {
        self.description.clone()
    }
}

/// RustDDS calls nobody back.
pub fn refuse_listener(endpoint: &Endpoint) -> Result<()> {
    if endpoint.dispatch == Dispatch::Listener {
        let why = "there is no listener: a reader is waited for or polled";
        return Err(Error::unsupported(format!("topic '{}': {why}", endpoint.topic)));
    }
    Ok(())
}
