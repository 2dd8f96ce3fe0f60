// SPDX-License-Identifier: Apache-2.0
//! Messages of ROS 2 as types that Serde serialises, as RustDDS wants them, and lagometer's own.
#![allow(missing_docs)] // their IDL has them
use lagometer_adapter::ros2::Ros2Payload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

lagometer_adapter::ros2_messages!(pub, Debug, Clone, Default, PartialEq, Serialize, Deserialize);

/// A message of any of the types.
pub trait Message: Ros2Payload + Serialize + DeserializeOwned + Send + 'static {}
impl<T: Ros2Payload + Serialize + DeserializeOwned + Send + 'static> Message for T {}
