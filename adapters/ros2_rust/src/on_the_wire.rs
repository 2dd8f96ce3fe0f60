// SPDX-License-Identifier: Apache-2.0
//! The length of messages as CDR.
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{PayloadType, Ros2Message};
use lagometer_rustdds_common::message::{Bytes, Image, Imu, Message, PointCloud2, Text};
use rustdds::no_key::SerializerAdapter;
use rustdds::CDRSerializerAdapter;

fn wire_bytes<M: Message>(message: Option<Ros2Message>, bytes: usize) -> usize {
    let payload = PayloadType { fixed: false, bytes_max: bytes, message };
    let made = M::of(Places::new(payload, bytes)).unwrap();
    <CDRSerializerAdapter<M> as SerializerAdapter<M>>::to_bytes(&made).unwrap().len()
}

#[test]
fn a_message_has_the_payload_and_what_the_idl_adds() {
    assert_eq!(wire_bytes::<Bytes>(None, 4096), 4096 + 4);
    assert_eq!(wire_bytes::<Text>(Some(Ros2Message::String), 4096), 4096 + 5);
    assert_eq!(wire_bytes::<Image>(Some(Ros2Message::Image), 4096), 4096 + 52);
    assert_eq!(wire_bytes::<Imu>(Some(Ros2Message::Imu), 328), 328 + 16);
    assert_eq!(wire_bytes::<PointCloud2>(Some(Ros2Message::PointCloud2), 4096), 4096 + 141);
}
