// SPDX-License-Identifier: Apache-2.0
//! What the adapters based on Zenoh share: the list of peers, and how a session's configuration differs from
//! the vendor's.
mod changes;
mod members;

pub use changes::{connect_again_soon, scouting, Change, Changes};
pub use members::{free_tcp_endpoint, unique_name, Membership};
