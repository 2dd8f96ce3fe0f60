// SPDX-License-Identifier: Apache-2.0
//! Messages of ROS 2 as types of Rust that Dust DDS describes, field for field as their IDL has them, and lagometer's own.
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;

/// What the middleware asks of a type of messages.
pub(crate) trait Wire: TypeSupport + Send + Sync + 'static {}
impl<T: TypeSupport + Send + Sync + 'static> Wire for T {}

/// `builtin_interfaces/Time`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Time {
    pub(crate) sec: i32,
    pub(crate) nanosec: u32,
}

/// `std_msgs/Header`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Header {
    pub(crate) stamp: Time,
    pub(crate) frame_id: String,
}

/// `lagometer::Bytes`, which every DDS adapter has.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Bytes {
    pub(crate) data: Vec<u8>,
}

/// `std_msgs/String`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Text {
    pub(crate) data: String,
}

/// `sensor_msgs/Image`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Image {
    pub(crate) header: Header,
    pub(crate) height: u32,
    pub(crate) width: u32,
    pub(crate) encoding: String,
    pub(crate) is_bigendian: u8,
    pub(crate) step: u32,
    pub(crate) data: Vec<u8>,
}

/// `geometry_msgs/Quaternion`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Quaternion {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) z: f64,
    pub(crate) w: f64,
}

/// `geometry_msgs/Vector3`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Vector3 {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) z: f64,
}

/// `sensor_msgs/Imu`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct Imu {
    pub(crate) header: Header,
    pub(crate) orientation: Quaternion,
    pub(crate) orientation_covariance: [f64; 9],
    pub(crate) angular_velocity: Vector3,
    pub(crate) angular_velocity_covariance: [f64; 9],
    pub(crate) linear_acceleration: Vector3,
    pub(crate) linear_acceleration_covariance: [f64; 9],
}

/// `sensor_msgs/PointField`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct PointField {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) datatype: u8,
    pub(crate) count: u32,
}

/// `sensor_msgs/PointCloud2`.
#[derive(Debug, Clone, Default, DdsType)]
pub(crate) struct PointCloud2 {
    pub(crate) header: Header,
    pub(crate) height: u32,
    pub(crate) width: u32,
    pub(crate) fields: Vec<PointField>,
    pub(crate) is_bigendian: bool,
    pub(crate) point_step: u32,
    pub(crate) row_step: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) is_dense: bool,
}
