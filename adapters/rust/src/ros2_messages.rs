// SPDX-License-Identifier: Apache-2.0
//! ROS 2 messages as Rust types, field for field as in their IDL, and conversions from and to payloads. For
//! middleware that registers types with its own derive.

/// Defines `Bytes` (lagometer's own: a sequence of octets), `Text` (`std_msgs/String`), `Image`, `Imu` and
/// `PointCloud2` and their parts, each with the given derives (`Default` must be among them) and
/// [`crate::ros2::Ros2Payload`]: `ros2_messages!(pub, Debug, Default, serde::Serialize);`
#[macro_export]
macro_rules! ros2_messages {
    ($visible:vis, $($derive:path),+) => {
        /// `builtin_interfaces/Time`.
        #[derive($($derive),+)]
        $visible struct Time {
            $visible sec: i32,
            $visible nanosec: u32,
        }

        /// `std_msgs/Header`.
        #[derive($($derive),+)]
        $visible struct Header {
            $visible stamp: Time,
            $visible frame_id: String,
        }

        /// `lagometer::Bytes`, which every DDS adapter has.
        #[derive($($derive),+)]
        $visible struct Bytes {
            $visible data: Vec<u8>,
        }

        /// `std_msgs/String`.
        #[derive($($derive),+)]
        $visible struct Text {
            $visible data: String,
        }

        /// `sensor_msgs/Image`.
        #[derive($($derive),+)]
        $visible struct Image {
            $visible header: Header,
            $visible height: u32,
            $visible width: u32,
            $visible encoding: String,
            $visible is_bigendian: u8,
            $visible step: u32,
            $visible data: Vec<u8>,
        }

        /// `geometry_msgs/Quaternion`.
        #[derive($($derive),+)]
        $visible struct Quaternion {
            $visible x: f64,
            $visible y: f64,
            $visible z: f64,
            $visible w: f64,
        }

        /// `geometry_msgs/Vector3`.
        #[derive($($derive),+)]
        $visible struct Vector3 {
            $visible x: f64,
            $visible y: f64,
            $visible z: f64,
        }

        /// `sensor_msgs/Imu`.
        #[derive($($derive),+)]
        $visible struct Imu {
            $visible header: Header,
            $visible orientation: Quaternion,
            $visible orientation_covariance: [f64; 9],
            $visible angular_velocity: Vector3,
            $visible angular_velocity_covariance: [f64; 9],
            $visible linear_acceleration: Vector3,
            $visible linear_acceleration_covariance: [f64; 9],
        }

        /// `sensor_msgs/PointField`.
        #[derive($($derive),+)]
        $visible struct PointField {
            $visible name: String,
            $visible offset: u32,
            $visible datatype: u8,
            $visible count: u32,
        }

        /// `sensor_msgs/PointCloud2`.
        #[derive($($derive),+)]
        $visible struct PointCloud2 {
            $visible header: Header,
            $visible height: u32,
            $visible width: u32,
            $visible fields: Vec<PointField>,
            $visible is_bigendian: bool,
            $visible point_step: u32,
            $visible row_step: u32,
            $visible data: Vec<u8>,
            $visible is_dense: bool,
        }

        impl $crate::ros2::Ros2Payload for Bytes {
            fn of(places: $crate::ros2::Places) -> $crate::Result<Self> {
                Ok(Self { data: places.first })
            }
            fn into_places(self) -> $crate::ros2::Places {
                $crate::ros2::Places { first: self.data, second: Vec::new() }
            }
        }

        impl $crate::ros2::Ros2Payload for Text {
            fn of(places: $crate::ros2::Places) -> $crate::Result<Self> {
                Ok(Self { data: $crate::ros2::text_of(places.first)? })
            }
            fn into_places(self) -> $crate::ros2::Places {
                $crate::ros2::Places { first: self.data.into_bytes(), second: Vec::new() }
            }
        }

        impl $crate::ros2::Ros2Payload for Image {
            fn of(places: $crate::ros2::Places) -> $crate::Result<Self> {
                let (height, width) = $crate::ros2::squarest(places.first.len());
                Ok(Self {
                    header: header(),
                    height,
                    width,
                    encoding: $crate::ros2::ENCODING.to_owned(),
                    is_bigendian: 0,
                    step: width,
                    data: places.first,
                })
            }
            fn into_places(self) -> $crate::ros2::Places {
                $crate::ros2::Places { first: self.data, second: Vec::new() }
            }
        }

        impl $crate::ros2::Ros2Payload for PointCloud2 {
            fn of(places: $crate::ros2::Places) -> $crate::Result<Self> {
                let bytes = places.first.len() as u32;
                let fields = $crate::ros2::POINT_FIELDS.iter().zip(0..).map(|(name, place)| PointField {
                    name: (*name).to_owned(),
                    offset: place * $crate::ros2::POINT_FIELD_BYTES,
                    datatype: $crate::ros2::POINT_FIELD_FLOAT32,
                    count: 1,
                });
                Ok(Self {
                    header: header(),
                    height: 1,
                    width: bytes / $crate::abi::POINT_BYTES,
                    fields: fields.collect(),
                    is_bigendian: false,
                    point_step: $crate::abi::POINT_BYTES,
                    row_step: bytes,
                    data: places.first,
                    is_dense: false,
                })
            }
            fn into_places(self) -> $crate::ros2::Places {
                $crate::ros2::Places { first: self.data, second: Vec::new() }
            }
        }

        $crate::imu_and_numbers!();

        impl $crate::ros2::Ros2Payload for Imu {
            fn of(places: $crate::ros2::Places) -> $crate::Result<Self> {
                let frame_id = $crate::ros2::text_of(places.first)?;
                let header = Header { frame_id, stamp: Time::default() };
                Ok(imu_of($crate::ros2::ImuNumbers::of(&places.second), header))
            }
            fn into_places(self) -> $crate::ros2::Places {
                let second = numbers_of(&self).octets();
                $crate::ros2::Places { first: self.header.frame_id.into_bytes(), second }
            }
        }

        /// Messages carry no time.
        fn header() -> Header {
            Header { stamp: Time::default(), frame_id: $crate::ros2::FRAME_ID.to_owned() }
        }
    };
}

/// Defines `imu_of` and `numbers_of`, which convert an Imu's numbers to its fields and back, for whichever
/// types `Imu`, `Header`, `Quaternion` and `Vector3` are in scope.
#[macro_export]
macro_rules! imu_and_numbers {
    () => {
        fn imu_of(numbers: $crate::ros2::ImuNumbers, header: Header) -> Imu {
            let [x, y, z, w] = numbers.orientation;
            let vector = |[x, y, z]: [f64; 3]| Vector3 { x, y, z };
            Imu {
                header,
                orientation: Quaternion { x, y, z, w },
                orientation_covariance: numbers.orientation_covariance,
                angular_velocity: vector(numbers.angular_velocity),
                angular_velocity_covariance: numbers.angular_velocity_covariance,
                linear_acceleration: vector(numbers.linear_acceleration),
                linear_acceleration_covariance: numbers.linear_acceleration_covariance,
            }
        }

        fn numbers_of(imu: &Imu) -> $crate::ros2::ImuNumbers {
            let turned = &imu.orientation;
            let three = |vector: &Vector3| [vector.x, vector.y, vector.z];
            $crate::ros2::ImuNumbers {
                orientation: [turned.x, turned.y, turned.z, turned.w],
                orientation_covariance: imu.orientation_covariance,
                angular_velocity: three(&imu.angular_velocity),
                angular_velocity_covariance: imu.angular_velocity_covariance,
                linear_acceleration: three(&imu.linear_acceleration),
                linear_acceleration_covariance: imu.linear_acceleration_covariance,
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::ros2::{Places, Ros2Payload};
    use crate::{PayloadType, Ros2Message};

    ros2_messages!(pub(super), Debug, Default, PartialEq);

    fn there_and_back<M: Ros2Payload>(message: Option<Ros2Message>, bytes: usize) {
        let payload = PayloadType { fixed: false, bytes_max: bytes, message };
        let places = Places::new(payload, bytes);
        assert_eq!(places.first.len() + places.second.len(), bytes);
        assert_eq!(M::of(places.clone()).unwrap().into_places(), places);
    }

    #[test]
    fn a_payload_comes_out_as_it_went_in() {
        there_and_back::<Bytes>(None, 4096);
        there_and_back::<Text>(Some(Ros2Message::String), 4096);
        there_and_back::<Image>(Some(Ros2Message::Image), 4096);
        there_and_back::<Imu>(Some(Ros2Message::Imu), 328);
        there_and_back::<PointCloud2>(Some(Ros2Message::PointCloud2), 4096);
    }
}
