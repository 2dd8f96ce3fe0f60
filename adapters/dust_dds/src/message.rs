// SPDX-License-Identifier: Apache-2.0
//! Messages of ROS 2 as types that Dust DDS's own derive describes, and lagometer's own.
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;
use lagometer_adapter::ros2::Ros2Payload;

lagometer_adapter::ros2_messages!(pub(crate), Debug, Clone, Default, DdsType);

/// A message of any of the types.
pub(crate) trait Message: Ros2Payload + TypeSupport + Send + Sync + 'static {}
impl<T: Ros2Payload + TypeSupport + Send + Sync + 'static> Message for T {}
