// SPDX-License-Identifier: Apache-2.0
//! Which part of a ROS 2 message is the payload, and what its other fields contain (docs/WORKLOADS.md,
//! "Payload types"), for all middleware with such messages. Names are those of rmw, as in the adapters
//! `cyclonedds` and `fastdds`: `adapters/common/ros2_messages.hpp`.
use crate::{abi, Doing, Loan, Memory, Origin, PayloadType, Result, Ros2Message};

const TEXT_BYTES: usize = abi::TEXT_ENVELOPE_BYTES as usize;
const NUMBER_BYTES: usize = size_of::<f64>();
const FILLER: u8 = b' '; // text that nobody has written yet

/// `header.frame_id`.
pub const FRAME_ID: &str = "lagometer";
/// `encoding` of an Image: a byte per pixel.
pub const ENCODING: &str = "mono8";
/// `fields` of a PointCloud2, of four bytes each.
pub const POINT_FIELDS: [&str; 4] = ["x", "y", "z", "intensity"];
/// The size of each.
pub const POINT_FIELD_BYTES: u32 = 4;
/// `datatype` of each.
pub const POINT_FIELD_FLOAT32: u8 = 7;

/// A payload, in the one or two regions where lagometer writes and reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The whole payload, or an Imu's text.
    pub first: Vec<u8>,
    /// An Imu's numbers; otherwise empty.
    pub second: Vec<u8>,
}

impl Places {
    /// Room for a payload; it already holds text, or the numbers of an IMU at rest.
    pub fn new(payload: PayloadType, bytes: usize) -> Self {
        match payload.message {
            Some(Ros2Message::String) => Self { first: vec![FILLER; bytes], second: Vec::new() },
            Some(Ros2Message::Imu) => {
                let at_rest = ImuNumbers { orientation: [0.0, 0.0, 0.0, 1.0], ..ImuNumbers::default() };
                Self { first: vec![FILLER; TEXT_BYTES], second: at_rest.octets() }
            }
            _ => Self { first: vec![0; bytes], second: Vec::new() },
        }
    }
}

/// A message that is built from a payload and converted back to one.
pub trait Ros2Payload: Sized {
    /// Fails if the payload does not fit the type, such as bytes in a String that are not text.
    fn of(places: Places) -> Result<Self>;
    /// The payload of a received message.
    fn into_places(self) -> Places;
}

/// The payload that a message will be built from, for middleware that takes messages by value.
impl Loan for Places {
    fn origin(&self) -> Origin {
        Origin::Copied
    }
    fn memory(&mut self) -> Memory<'_> {
        self.first.as_mut_slice().into()
    }
    fn memory_behind(&mut self) -> Option<Memory<'_>> {
        (!self.second.is_empty()).then(|| self.second.as_mut_slice().into())
    }
}

/// A payload's text. Fails if it is not text.
pub fn text_of(octets: Vec<u8>) -> Result<String> {
    String::from_utf8(octets).doing("making text of a payload")
}

/// The numbers of an Imu, in the order of its IDL.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ImuNumbers {
    /// x, y, z, w.
    pub orientation: [f64; 4],
    /// Row by row, like the others.
    pub orientation_covariance: [f64; 9],
    /// x, y, z.
    pub angular_velocity: [f64; 3],
    /// Its covariance.
    pub angular_velocity_covariance: [f64; 9],
    /// x, y, z.
    pub linear_acceleration: [f64; 3],
    /// Its covariance.
    pub linear_acceleration_covariance: [f64; 9],
}

impl ImuNumbers {
    /// The numbers in a payload; missing ones are 0.
    pub fn of(octets: &[u8]) -> Self {
        let mut numbers = octets
            .chunks_exact(NUMBER_BYTES)
            .map(|octets| f64::from_le_bytes(octets.try_into().unwrap_or_default()));
        let mut next = |_| numbers.next().unwrap_or_default();
        Self {
            orientation: std::array::from_fn(&mut next),
            orientation_covariance: std::array::from_fn(&mut next),
            angular_velocity: std::array::from_fn(&mut next),
            angular_velocity_covariance: std::array::from_fn(&mut next),
            linear_acceleration: std::array::from_fn(&mut next),
            linear_acceleration_covariance: std::array::from_fn(&mut next),
        }
    }

    /// The numbers as in a payload.
    pub fn octets(&self) -> Vec<u8> {
        let all: [&[f64]; 6] = [
            &self.orientation,
            &self.orientation_covariance,
            &self.angular_velocity,
            &self.angular_velocity_covariance,
            &self.linear_acceleration,
            &self.linear_acceleration_covariance,
        ];
        all.iter().flat_map(|numbers| numbers.iter()).flat_map(|number| number.to_le_bytes()).collect()
    }
}

/// A node name that ROS 2 allows.
pub fn node_name(name: &str) -> String {
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        format!("n{name}")
    }
}

/// The name of a topic or service with every character that ROS 2 does not allow written as `_xHH`, as in the
/// C++ adapters.
pub fn graph_name(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'_' | b'/' => result.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => result.push(char::from(byte)),
            _ => result.push_str(&format!("_x{byte:02X}")),
        }
    }
    result
}

/// Rows and columns of the squarest image of exactly this many pixels; never higher than wide.
pub fn squarest(pixels: usize) -> (u32, u32) {
    let height =
        (1..).take_while(|side| side * side <= pixels).filter(|side| pixels.is_multiple_of(*side)).last();
    let height = height.unwrap_or(1);
    (height as u32, (pixels / height) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_made_such_that_ros_takes_them() {
        assert_eq!(["node-1", "1st", "plain", ""].map(node_name), ["node_1", "n1st", "plain", "n"]);
    }

    #[test]
    fn names_of_topics_keep_what_ros_takes() {
        assert_eq!(
            ["a/b_1", "navigate.goal", "ü"].map(graph_name),
            ["a/b_1", "navigate_x2Egoal", "_xC3_xBC"]
        );
    }

    #[test]
    fn an_image_is_as_square_as_can_be() {
        assert_eq!([squarest(1 << 20), squarest(7), squarest(12)], [(1024, 1024), (1, 7), (3, 4)]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(text_of(vec![0xFF; 32]).is_err());
    }

    #[test]
    fn numbers_come_out_as_they_went_in() {
        let count = (abi::IMU_BYTES as usize - TEXT_BYTES) / NUMBER_BYTES;
        let octets: Vec<u8> = (0..count).flat_map(|place| (place as f64).to_le_bytes()).collect();
        let numbers = ImuNumbers::of(&octets);
        assert_eq!((numbers.orientation[3], numbers.linear_acceleration_covariance[8]), (3.0, 36.0));
        assert_eq!(numbers.octets(), octets);
        assert_eq!(ImuNumbers::of(&octets[..8 * 2]).orientation, [0.0, 1.0, 0.0, 0.0]);
    }
}
