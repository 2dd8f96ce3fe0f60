// SPDX-License-Identifier: Apache-2.0
//! The ABI of lagometer's adapters (`lagometer/adapter.h`) as safe Rust.
//!
//! An adapter implements [`Adapter`] and the traits of its objects, and calls [`export_adapter!`] once. This
//! crate contains the whole border to C and all `unsafe` that it needs; a panic never crosses it (see
//! `guard`).

/// `lagometer/adapter.h`, field for field; `layout.rs` checks sizes and offsets against the header.
#[allow(missing_docs)]
pub mod abi;
mod bell;
mod config;
mod description;
mod error;
mod guard;
mod host;
mod inbox;
mod layout;
mod objects;
pub mod ros2;
mod ros2_messages;
mod services_table;
mod sidecar;
mod stamps;
mod stamps_table;
mod table;
mod waitset_table;

pub use bell::{Bell, Knock, Poller};
pub use config::{
    ContextConfig, Dispatch, Endpoint, History, Link, OnData, PayloadType, Profile, Qos, Ros2Message,
};
pub use description::{kernel_socket_limit, Description};
pub use error::{Doing, Error, Result};
pub use guard::callback;
pub use host::{current_cpu, fail, log as host_log, now_ns, Level};
pub use inbox::{Fillable, HasInbox, Inbox, InboxWaitset};
pub use objects::*;
pub use serde_json;
pub use sidecar::{Options, Sidecar};
pub use stamps::{writer_id, Layer, Layers, Span, Stamps};
#[doc(hidden)]
pub use table::{enter, table};

/// The most regions that a message may have.
pub const REGIONS_MAX: usize = abi::REGIONS_MAX;

/// Defines an adapter's only exported symbol: `export_adapter!(TheTypeThatImplementsAdapter);`
#[macro_export]
macro_rules! export_adapter {
    ($adapter:ty) => {
        /// The library's only symbol.
        ///
        /// # Safety
        /// `host` is null or points at a host that lives as long as the process.
        #[allow(unsafe_code)]
        #[no_mangle]
        pub unsafe extern "C" fn lagometer_adapter(
            host: *const $crate::abi::Host,
        ) -> *const $crate::abi::Table {
            static TABLE: $crate::abi::Table = $crate::table::<$adapter>();
            // SAFETY: the caller's promise is the same.
            unsafe { $crate::enter(host, &TABLE) }
        }
    };
}
