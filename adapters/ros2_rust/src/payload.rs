// SPDX-License-Identifier: Apache-2.0
//! What of a message is the payload, and what stands in its other fields (docs/WORKLOADS.md, "Payload types"). Names are
//! those of rmw, as the adapters `cyclonedds` and `fastdds` have them: `adapters/common/ros2_messages.hpp`.
use lagometer_adapter::{abi, Doing, PayloadType, Result, Ros2Message};

use crate::message::{
    Bytes, Header, Image, Imu, PointCloud2, PointField, Quaternion, Text, Time, Vector3, Wire,
};

const TEXT_BYTES: usize = abi::TEXT_ENVELOPE_BYTES as usize;
const NUMBER_BYTES: usize = size_of::<f64>();
const NUMBERS: usize = (abi::IMU_BYTES as usize - TEXT_BYTES) / NUMBER_BYTES;
/// The third of an Imu's numbers: with it alone, there is no rotation.
const ORIENTATION_W: usize = 3;

const FRAME_ID: &str = "lagometer";
const ENCODING: &str = "mono8"; // a byte for each pixel
const FILLER: u8 = b' '; // of text that nobody wrote yet
const POINT_FIELDS: [&str; 4] = ["x", "y", "z", "intensity"];
const POINT_FIELD_BYTES: u32 = 4;
const POINT_FIELD_FLOAT32: u8 = 7;

/// A payload, in the one or two places where lagometer writes and reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) first: Vec<u8>,
    /// Of an Imu alone: its numbers.
    pub(crate) second: Vec<u8>,
}

impl Places {
    /// Room for a payload; text is there already, and numbers are those of an IMU at rest.
    pub(crate) fn new(payload: PayloadType, bytes: usize) -> Self {
        match payload.message {
            Some(Ros2Message::String) => Self { first: vec![FILLER; bytes], second: Vec::new() },
            Some(Ros2Message::Imu) => {
                let mut numbers = [0.0; NUMBERS];
                numbers[ORIENTATION_W] = 1.0;
                Self { first: vec![FILLER; TEXT_BYTES], second: octets_of(&numbers) }
            }
            _ => Self { first: vec![0; bytes], second: Vec::new() },
        }
    }
}

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
        let mut numbers = places
            .second
            .chunks_exact(NUMBER_BYTES)
            .map(|octets| f64::from_le_bytes(octets.try_into().unwrap_or_default()));
        let mut next = || numbers.next().unwrap_or_default();
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

fn text_of(octets: Vec<u8>) -> Result<String> {
    String::from_utf8(octets).doing("making text of a payload")
}

fn octets_of(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Rows and columns of the squarest image of just so many pixels; no higher than wide.
fn squarest(pixels: usize) -> (u32, u32) {
    let height =
        (1..).take_while(|side| side * side <= pixels).filter(|side| pixels.is_multiple_of(*side)).last();
    let height = height.unwrap_or(1);
    (height as u32, (pixels / height) as u32)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn an_image_is_as_square_as_can_be() {
        assert_eq!([squarest(1 << 20), squarest(7), squarest(12)], [(1024, 1024), (1, 7), (3, 4)]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(Text::of(Places { first: vec![0xFF; 32], second: Vec::new() }).is_err());
    }
}
