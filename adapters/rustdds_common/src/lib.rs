// SPDX-License-Identifier: Apache-2.0
//! What the adapters have in common that stand on RustDDS: the participant and its ports, whom its endpoints know, the
//! buffers of its sockets, a waitset, and messages of ROS 2.
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
