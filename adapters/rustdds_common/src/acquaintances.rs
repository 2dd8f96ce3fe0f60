// SPDX-License-Identifier: Apache-2.0
//! Which endpoints are matched, according to a participant's events. An endpoint's own events do not help:
//! RustDDS keeps four of them and drops the rest.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rustdds::{
    DomainParticipant, DomainParticipantStatusEvent, DomainParticipantStatusListener, StatusEvented, GUID,
};

/// The matches of all endpoints of a participant.
pub(crate) struct Acquaintances {
    listener: DomainParticipantStatusListener,
    others: Mutex<BTreeMap<GUID, BTreeSet<GUID>>>,
}

impl Acquaintances {
    pub(crate) fn new(participant: &DomainParticipant) -> Self {
        Self { listener: participant.status_listener(), others: Mutex::default() }
    }

    /// How many counterparts the endpoint has.
    pub(crate) fn count(&self, endpoint: GUID) -> u32 {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(event) = self.listener.try_recv_status() {
            note(&mut others, event);
        }
        others.get(&endpoint).map_or(0, |matched| matched.len() as u32)
    }

    /// An endpoint of this participant is gone: RustDDS only tells the participant about others'.
    pub(crate) fn forget(&self, endpoint: GUID) {
        self.count(endpoint);
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.remove(&endpoint);
        for matched in others.values_mut() {
            matched.remove(&endpoint);
        }
    }
}

fn note(others: &mut BTreeMap<GUID, BTreeSet<GUID>>, event: DomainParticipantStatusEvent) {
    use DomainParticipantStatusEvent as Event;
    match event {
        Event::RemoteReaderMatched { local_writer, remote_reader } => {
            others.entry(local_writer).or_default().insert(remote_reader);
        }
        Event::RemoteWriterMatched { local_reader, remote_writer } => {
            others.entry(local_reader).or_default().insert(remote_writer);
        }
        Event::ReaderLost { guid, .. } | Event::WriterLost { guid, .. } => {
            for matched in others.values_mut() {
                matched.remove(&guid);
            }
        }
        Event::ParticipantLost { id, .. } => {
            others.values_mut().for_each(|matched| matched.retain(|guid| guid.prefix != id));
        }
        _ => (),
    }
}
