// SPDX-License-Identifier: Apache-2.0
//! ROS 2 messages as types that Serde serialises, as RustDDS requires, and lagometer's own.
#![allow(missing_docs)] // their IDL has them
use lagometer_adapter::ros2::Ros2Payload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

lagometer_adapter::ros2_messages!(pub, Debug, Clone, Default, PartialEq, Serialize, Deserialize);

/// A message of any of the types.
pub trait Message: Ros2Payload + Serialize + DeserializeOwned + Send + 'static {}
impl<T: Ros2Payload + Serialize + DeserializeOwned + Send + 'static> Message for T {}
