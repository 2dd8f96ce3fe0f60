// SPDX-License-Identifier: Apache-2.0
//! ROS 2 messages as types described by Dust DDS's own derive, and lagometer's own.
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;
use lagometer_adapter::ros2::Ros2Payload;

lagometer_adapter::ros2_messages!(pub(crate), Debug, Clone, Default, DdsType);

/// A message of any of the types.
pub(crate) trait Message: Ros2Payload + TypeSupport + Send + Sync + 'static {}
impl<T: Ros2Payload + TypeSupport + Send + Sync + 'static> Message for T {}
