// SPDX-License-Identifier: Apache-2.0
//! The vendor's serialisation, noted for the layer stamps: hiroz takes the serialiser as a type.
use std::marker::PhantomData;

use hiroz::msg::{NativeCdrSerdes, ZDeserializer, ZSerializer};
use lagometer_adapter::Span;
use zenoh::shm::{PosixShmProviderBackend, ShmProvider};
use zenoh_buffers::ZBuf;

use crate::message::Message;

/// What a publisher serialises with. When, is noted only while somebody asks for it on that thread.
pub(crate) struct Serialising<M>(PhantomData<M>);

type Vendors<M> = NativeCdrSerdes<M>;

impl<M: Message> ZSerializer for Serialising<M> {
    type Input<'a>
        = &'a M
    where
        M: 'a;

    fn serialize_to_zbuf(message: &M) -> ZBuf {
        Span::of(|| Vendors::<M>::serialize_to_zbuf(message)).0
    }
    fn serialize_to_zbuf_with_hint(message: &M, bytes: usize) -> ZBuf {
        Span::of(|| Vendors::<M>::serialize_to_zbuf_with_hint(message, bytes)).0
    }
    fn serialize_to_shm(
        message: &M,
        bytes: usize,
        provider: &ShmProvider<PosixShmProviderBackend>,
    ) -> zenoh::Result<(ZBuf, usize)> {
        Span::of(|| Vendors::<M>::serialize_to_shm(message, bytes, provider)).0
    }
    fn serialize_to_buf(message: &M, buffer: &mut Vec<u8>) {
        Span::of(|| Vendors::<M>::serialize_to_buf(message, buffer)).0
    }
}

/// What a subscription deserialises with if somebody asked for stamps and it calls back: then hiroz
/// deserialises on Zenoh's thread, and passes on nothing but the result.
pub(crate) struct Deserialising<M>(PhantomData<M>);

impl<M: Message> ZDeserializer for Deserialising<M> {
    type Input<'a> = &'a [u8];
    type Output = (M, Span);
    type Error = <Vendors<M> as ZDeserializer>::Error;

    fn deserialize(octets: &[u8]) -> Result<(M, Span), Self::Error> {
        let (message, span) = Span::timed(|| Vendors::<M>::deserialize(octets));
        Ok((message?, span))
    }
}

#[cfg(test)]
mod tests {
    use lagometer_adapter::ros2::Places;
    use lagometer_adapter::{Layer, Layers, PayloadType, Ros2Message, Stamps};

    use super::*;
    use crate::message::{Bytes, Image, Imu, PointCloud2, Text};

    fn check<M: Message>(message: Option<Ros2Message>, bytes: usize) {
        let places = Places::new(PayloadType { fixed: false, bytes_max: bytes, message }, bytes);
        let message = M::of(places.clone()).unwrap();
        let plain = Vendors::<M>::serialize(&message);
        let mut stamps = Stamps::new(Layers::of(&[Layer::Serialise]));
        let (octets, span) =
            stamps.around(Layer::Write, Layer::Serialise, || Serialising::<M>::serialize_to_zbuf(&message));
        assert!(span.is_some(), "serialising was not noted");
        let octets: Vec<u8> = octets.zslices().flat_map(|slice| slice.as_slice().to_vec()).collect();
        assert_eq!(octets, plain);
        let (received, _) = Deserialising::<M>::deserialize(&octets).unwrap();
        assert_eq!(received.into_held().regions(), [&places.first[..], &places.second[..]]);
    }

    #[test]
    fn it_is_the_vendors_serialisation_and_is_noted() {
        check::<Bytes>(None, 4096);
        check::<Text>(Some(Ros2Message::String), 4096);
        check::<Image>(Some(Ros2Message::Image), 4096);
        check::<Imu>(Some(Ros2Message::Imu), 328);
        check::<PointCloud2>(Some(Ros2Message::PointCloud2), 4096);
        assert!(Deserialising::<Text>::deserialize(&[0, 1]).is_err());
    }
}
