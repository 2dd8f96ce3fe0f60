// SPDX-License-Identifier: Apache-2.0
//! A message whose conversion by Serde is noted for the layer stamps. ros2-client fixes the serialiser, so
//! this is where an application's own code runs within it.
use lagometer_adapter::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// On the wire it is what it contains.
pub(crate) struct Stamped<M>(pub(crate) M);

impl<M: Serialize> Serialize for Stamped<M> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Span::of(|| self.0.serialize(serializer)).0
    }
}

impl<'de, M: Deserialize<'de>> Deserialize<'de> for Stamped<M> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Span::of(|| M::deserialize(deserializer)).0.map(Self)
    }
}

#[cfg(test)]
mod tests {
    use lagometer_adapter::ros2::Places;
    use lagometer_adapter::{Layer, Layers, PayloadType, Ros2Message, Stamps};
    use lagometer_rustdds_common::message::Message;
    use lagometer_rustdds_common::message::{Bytes, Image, Imu, PointCloud2, Text};
    use rustdds::no_key::{DeserializerAdapter, SerializerAdapter};
    use rustdds::{CDRDeserializerAdapter, CDRSerializerAdapter, RepresentationIdentifier};

    use super::*;

    fn wire<M: Serialize>(message: &M) -> Vec<u8> {
        <CDRSerializerAdapter<M> as SerializerAdapter<M>>::to_bytes(message).unwrap().to_vec()
    }

    fn check<M: Message>(message: Option<Ros2Message>, bytes: usize) {
        let places = Places::new(PayloadType { fixed: false, bytes_max: bytes, message }, bytes);
        let plain = wire(&M::of(places.clone()).unwrap());
        let stamped = Stamped(M::of(places.clone()).unwrap());

        let mut stamps = Stamps::new(Layers::of(&[Layer::Serialise, Layer::Deserialise]));
        let (octets, serialised) = stamps.around(Layer::Write, Layer::Serialise, || wire(&stamped));
        assert_eq!(octets, plain);
        assert!(serialised.is_some(), "serialising was not noted");

        let (taken, deserialised) = stamps.around(Layer::Take, Layer::Deserialise, || {
            CDRDeserializerAdapter::<Stamped<M>>::from_bytes(&octets, RepresentationIdentifier::CDR_LE)
        });
        assert!(deserialised.is_some(), "deserialising was not noted");
        assert_eq!(taken.unwrap().0.into_places(), places);
    }

    #[test]
    fn on_the_wire_it_is_what_it_contains_and_both_conversions_are_noted() {
        check::<Bytes>(None, 4096);
        check::<Text>(Some(Ros2Message::String), 4096);
        check::<Image>(Some(Ros2Message::Image), 4096);
        check::<Imu>(Some(Ros2Message::Imu), 328);
        check::<PointCloud2>(Some(Ros2Message::PointCloud2), 4096);
    }
}
