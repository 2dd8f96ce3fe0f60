// SPDX-License-Identifier: Apache-2.0
//! What the adapters based on RustDDS share: the participant and its ports, the matches of its endpoints, the
//! buffers of its sockets, a waitset, and ROS 2 messages.
mod acquaintances;
mod facts;
pub mod message;
mod participant;
mod ports;
mod sockets;
mod waitset;

pub use facts::{refuse_listener, Facts};
pub use participant::{domain, Participant, SharedParticipant};
pub use sockets::Sockets;
pub use waitset::{Awaited, MioWaitset, Told};
