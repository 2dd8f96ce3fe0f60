// SPDX-License-Identifier: Apache-2.0
//! Payloads as messages of ROS 2, and back: what stands in which field is in `lagometer_adapter::ros2`.
pub(crate) use lagometer_adapter::ros2::Places;
use lagometer_adapter::ros2::{
    numbers_of, octets_of, squarest, text_of, ENCODING, FRAME_ID, NUMBERS, POINT_FIELDS, POINT_FIELD_BYTES,
    POINT_FIELD_FLOAT32,
};
use lagometer_adapter::{abi, Result};

use crate::message::{
    Bytes, Header, Image, Imu, PointCloud2, PointField, Quaternion, Text, Time, Vector3, Wire,
};

/// A message of any of the types.
pub(crate) trait Message: Wire + Sized {
    fn of(places: Places) -> Result<Self>;
    fn into_places(self) -> Places;
}

impl Message for Bytes {
    fn of(places: Places) -> Result<Self> {
        Ok(Self { data: places.first })
    }
    fn into_places(self) -> Places {
        Places { first: self.data, second: Vec::new() }
    }
}

impl Message for Text {
    fn of(places: Places) -> Result<Self> {
        Ok(Self { data: text_of(places.first)? })
    }
    fn into_places(self) -> Places {
        Places { first: self.data.into_bytes(), second: Vec::new() }
    }
}

impl Message for Image {
    fn of(places: Places) -> Result<Self> {
        let (height, width) = squarest(places.first.len());
        Ok(Self {
            header: header(),
            height,
            width,
            encoding: ENCODING.to_owned(),
            is_bigendian: 0,
            step: width,
            data: places.first,
        })
    }
    fn into_places(self) -> Places {
        Places { first: self.data, second: Vec::new() }
    }
}

impl Message for PointCloud2 {
    fn of(places: Places) -> Result<Self> {
        let bytes = places.first.len() as u32;
        let fields = POINT_FIELDS.iter().zip(0..).map(|(name, place)| PointField {
            name: (*name).to_owned(),
            offset: place * POINT_FIELD_BYTES,
            datatype: POINT_FIELD_FLOAT32,
            count: 1,
        });
        Ok(Self {
            header: header(),
            height: 1,
            width: bytes / abi::POINT_BYTES,
            fields: fields.collect(),
            is_bigendian: false,
            point_step: abi::POINT_BYTES,
            row_step: bytes,
            data: places.first,
            is_dense: false,
        })
    }
    fn into_places(self) -> Places {
        Places { first: self.data, second: Vec::new() }
    }
}

impl Message for Imu {
    fn of(places: Places) -> Result<Self> {
        let mut next = numbers_of(&places.second);
        let orientation = Quaternion { x: next(), y: next(), z: next(), w: next() };
        let orientation_covariance = std::array::from_fn(|_| next());
        let angular_velocity = Vector3 { x: next(), y: next(), z: next() };
        let angular_velocity_covariance = std::array::from_fn(|_| next());
        let linear_acceleration = Vector3 { x: next(), y: next(), z: next() };
        let linear_acceleration_covariance = std::array::from_fn(|_| next());
        Ok(Self {
            header: Header { frame_id: text_of(places.first)?, stamp: Time::default() },
            orientation,
            orientation_covariance,
            angular_velocity,
            angular_velocity_covariance,
            linear_acceleration,
            linear_acceleration_covariance,
        })
    }
    fn into_places(self) -> Places {
        let (turned, turning, moving) = (self.orientation, self.angular_velocity, self.linear_acceleration);
        let mut numbers = Vec::with_capacity(NUMBERS);
        numbers.extend([turned.x, turned.y, turned.z, turned.w]);
        numbers.extend(self.orientation_covariance);
        numbers.extend([turning.x, turning.y, turning.z]);
        numbers.extend(self.angular_velocity_covariance);
        numbers.extend([moving.x, moving.y, moving.z]);
        numbers.extend(self.linear_acceleration_covariance);
        Places { first: self.header.frame_id.into_bytes(), second: octets_of(&numbers) }
    }
}

/// No time travels in a message.
fn header() -> Header {
    Header { stamp: Time::default(), frame_id: FRAME_ID.to_owned() }
}

#[cfg(test)]
mod tests {
    use lagometer_adapter::{PayloadType, Ros2Message};

    use super::*;

    fn there_and_back<M: Message>(message: Option<Ros2Message>, bytes: usize) {
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
