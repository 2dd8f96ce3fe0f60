// SPDX-License-Identifier: Apache-2.0
//! The vendor's own ROS 2 messages, and lagometer's; conversions from and to payloads.
use byteorder::ByteOrder;
use hiroz::msg::{NativeCdrSerdes, ZMessage};
use hiroz::{MessageTypeInfo, TypeHash, WithTypeInfo, ZBuf};
use hiroz_cdr::{CdrBuffer, CdrDeserialize, CdrReader, CdrSerialize, CdrSerializedSize, CdrWriter};
use hiroz_msgs::geometry_msgs::{Quaternion, Vector3};
use hiroz_msgs::sensor_msgs::PointField;
pub(crate) use hiroz_msgs::sensor_msgs::{Image, Imu, PointCloud2};
use hiroz_msgs::std_msgs::Header;
pub(crate) use hiroz_msgs::std_msgs::String as Text;
use lagometer_adapter::ros2::{
    squarest, text_of, ImuNumbers, Places, ENCODING, FRAME_ID, POINT_FIELDS, POINT_FIELD_BYTES,
    POINT_FIELD_FLOAT32,
};
use lagometer_adapter::{abi, Result};

/// A message of any of the types, serialised as the vendor's generated code does.
pub(crate) trait Message:
    ZMessage<Serdes = NativeCdrSerdes<Self>> + WithTypeInfo + CdrSerialize + CdrDeserialize + CdrSerializedSize
{
    fn of(places: Places) -> Result<Self>;
    fn into_held(self) -> Held;
}

/// The payload of a received message.
#[derive(Debug)]
pub(crate) enum Held {
    /// A field of octets, in the vendor's type.
    Octets(ZBuf),
    /// Converted from other fields.
    Places(Places),
}

impl Held {
    /// Its one or two regions.
    pub(crate) fn regions(&self) -> [&[u8]; 2] {
        match self {
            Self::Octets(octets) => [octets.zslices().next().map_or(&[][..], |slice| slice.as_slice()), &[]],
            Self::Places(places) => [&places.first, &places.second],
        }
    }
}

/// `lagometer/Bytes`, which is not a ROS 2 message: `uint8[] data`.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    data: ZBuf,
}

impl CdrSerialize for Bytes {
    fn cdr_serialize<BO: ByteOrder, B: CdrBuffer>(&self, writer: &mut CdrWriter<'_, BO, B>) {
        self.data.cdr_serialize(writer);
    }
}

impl CdrDeserialize for Bytes {
    fn cdr_deserialize<'de, BO: ByteOrder>(reader: &mut CdrReader<'de, BO>) -> hiroz_cdr::Result<Self> {
        Ok(Self { data: ZBuf::cdr_deserialize(reader)? })
    }
}

impl CdrSerializedSize for Bytes {
    fn cdr_serialized_size(&self, position: usize) -> usize {
        self.data.cdr_serialized_size(position)
    }
}

impl MessageTypeInfo for Bytes {
    fn type_name() -> &'static str {
        "lagometer::msg::dds_::Bytes_"
    }
    fn type_hash() -> TypeHash {
        TypeHash::zero()
    }
}

impl WithTypeInfo for Bytes {}

impl Message for Bytes {
    fn of(places: Places) -> Result<Self> {
        Ok(Self { data: places.first.into() })
    }
    fn into_held(self) -> Held {
        Held::Octets(self.data)
    }
}

impl Message for Text {
    fn of(places: Places) -> Result<Self> {
        Ok(Self { data: text_of(places.first)? })
    }
    fn into_held(self) -> Held {
        Held::Places(Places { first: self.data.into_bytes(), second: Vec::new() })
    }
}

impl Message for Image {
    fn of(places: Places) -> Result<Self> {
        let (height, width) = squarest(places.first.len());
        Ok(Self {
            header: header(FRAME_ID.to_owned()),
            height,
            width,
            encoding: ENCODING.to_owned(),
            step: width,
            data: places.first.into(),
            ..Self::default()
        })
    }
    fn into_held(self) -> Held {
        Held::Octets(self.data)
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
            header: header(FRAME_ID.to_owned()),
            height: 1,
            width: bytes / abi::POINT_BYTES,
            fields: fields.collect(),
            point_step: abi::POINT_BYTES,
            row_step: bytes,
            data: places.first.into(),
            ..Self::default()
        })
    }
    fn into_held(self) -> Held {
        Held::Octets(self.data)
    }
}

lagometer_adapter::imu_and_numbers!();

impl Message for Imu {
    fn of(places: Places) -> Result<Self> {
        Ok(imu_of(ImuNumbers::of(&places.second), header(text_of(places.first)?)))
    }
    fn into_held(self) -> Held {
        let second = numbers_of(&self).octets();
        Held::Places(Places { first: self.header.frame_id.into_bytes(), second })
    }
}

/// Messages carry no time.
fn header(frame_id: String) -> Header {
    Header { frame_id, ..Header::default() }
}

#[cfg(test)]
mod tests {
    use hiroz::msg::{ZDeserializer, ZSerializer};
    use lagometer_adapter::{PayloadType, Ros2Message};

    use super::*;

    /// Checks that its payload survives the conversion; returns its length as CDR, without the four bytes
    /// before it.
    fn wire_bytes<M: Message>(message: Option<Ros2Message>, bytes: usize) -> usize {
        let payload = PayloadType { fixed: false, bytes_max: bytes, message };
        let places = Places::new(payload, bytes);
        let wire = NativeCdrSerdes::<M>::serialize(&M::of(places.clone()).unwrap());
        let held = NativeCdrSerdes::<M>::deserialize(&wire).unwrap().into_held();
        assert_eq!(held.regions(), [&places.first[..], &places.second[..]]);
        wire.len() - 4
    }

    #[test]
    fn a_message_has_the_payload_and_what_the_idl_adds() {
        assert_eq!(wire_bytes::<Bytes>(None, 4096), 4096 + 4);
        assert_eq!(wire_bytes::<Text>(Some(Ros2Message::String), 4096), 4096 + 5);
        assert_eq!(wire_bytes::<Image>(Some(Ros2Message::Image), 4096), 4096 + 52);
        assert_eq!(wire_bytes::<Imu>(Some(Ros2Message::Imu), 328), 328 + 16);
        assert_eq!(wire_bytes::<PointCloud2>(Some(Ros2Message::PointCloud2), 4096), 4096 + 141);
    }
}
