// SPDX-License-Identifier: Apache-2.0
//! Why a call failed: a status of the ABI and an error text.
use std::fmt::Display;

use crate::abi;

/// Why a call failed: what was wrong, where, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(crate) status: abi::Status,
    pub(crate) message: String,
}

/// What the functions of this crate and of an adapter return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The middleware can't do this; the sidecar also declares it.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(abi::UNSUPPORTED, message)
    }
    /// The caller asked for something impossible.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(abi::INVALID, message)
    }
    /// Memory, descriptors, ports or segments are used up.
    pub fn no_resource(message: impl Into<String>) -> Self {
        Self::new(abi::NO_RESOURCE, message)
    }
    /// The middleware refused or broke.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(abi::FAILED, message)
    }

    fn new(status: abi::Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

/// Says what the code was doing when the middleware returned an error.
pub trait Doing<T> {
    /// The error as [`Error::failed`], with `what` in front.
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Error::failed(format!("{what}: {error}")))
    }
}
