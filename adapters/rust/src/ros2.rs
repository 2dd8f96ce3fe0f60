// SPDX-License-Identifier: Apache-2.0
//! What of a message of ROS 2 is the payload, and what stands in its other fields (docs/WORKLOADS.md, "Payload types"), in
//! whatever way a middleware has such messages. Names are those of rmw, as the adapters `cyclonedds` and `fastdds` have
//! them: `adapters/common/ros2_messages.hpp`.
use crate::{abi, Doing, Loan, Memory, Origin, PayloadType, Result, Ros2Message};

const TEXT_BYTES: usize = abi::TEXT_ENVELOPE_BYTES as usize;
const NUMBER_BYTES: usize = size_of::<f64>();
/// How many numbers an Imu has.
pub const NUMBERS: usize = (abi::IMU_BYTES as usize - TEXT_BYTES) / NUMBER_BYTES;
/// The third of an Imu's numbers: with it alone, there is no rotation.
const ORIENTATION_W: usize = 3;
const FILLER: u8 = b' '; // of text that nobody wrote yet

/// `header.frame_id`.
pub const FRAME_ID: &str = "lagometer";
/// `encoding` of an Image: a byte for each pixel.
pub const ENCODING: &str = "mono8";
/// `fields` of a PointCloud2, of four bytes each.
pub const POINT_FIELDS: [&str; 4] = ["x", "y", "z", "intensity"];
/// The size of each.
pub const POINT_FIELD_BYTES: u32 = 4;
/// `datatype` of each.
pub const POINT_FIELD_FLOAT32: u8 = 7;

/// A payload, in the one or two places where lagometer writes and reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// All of it, or an Imu's text.
    pub first: Vec<u8>,
    /// Of an Imu alone: its numbers.
    pub second: Vec<u8>,
}

impl Places {
    /// Room for a payload; text is there already, and numbers are those of an IMU at rest.
    pub fn new(payload: PayloadType, bytes: usize) -> Self {
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

/// What a message will be made of, for a middleware that takes messages by value.
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

/// The text of a payload. Fails if it is none.
pub fn text_of(octets: Vec<u8>) -> Result<String> {
    String::from_utf8(octets).doing("making text of a payload")
}

/// The octets of numbers, as a payload has them.
pub fn octets_of(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers that a payload has; 0 for what is not there.
pub fn numbers_of(octets: &[u8]) -> impl FnMut() -> f64 + '_ {
    let mut numbers = octets
        .chunks_exact(NUMBER_BYTES)
        .map(|octets| f64::from_le_bytes(octets.try_into().unwrap_or_default()));
    move || numbers.next().unwrap_or_default()
}

/// A name that ROS 2 allows a node to have.
pub fn node_name(name: &str) -> String {
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        format!("n{name}")
    }
}

/// Rows and columns of the squarest image of just so many pixels; no higher than wide.
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
    fn an_image_is_as_square_as_can_be() {
        assert_eq!([squarest(1 << 20), squarest(7), squarest(12)], [(1024, 1024), (1, 7), (3, 4)]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(text_of(vec![0xFF; 32]).is_err());
    }

    #[test]
    fn numbers_come_out_as_they_went_in() {
        let octets = octets_of(&[1.5, -2.0]);
        let mut next = numbers_of(&octets);
        assert_eq!([next(), next(), next()], [1.5, -2.0, 0.0]);
    }
}
