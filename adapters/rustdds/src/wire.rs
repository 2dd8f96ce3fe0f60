// SPDX-License-Identifier: Apache-2.0
//! The payload types on the wire, CDR version 1, under the names used by the adapters `cyclonedds` and
//! `fastdds`.
//!
//! Through Serde and RustDDS's own adapter, a `Vec<u8>` is processed octet by octet. An application may bring
//! its own adapter, which processes all octets at once, like other vendors' generated code.
use std::marker::PhantomData;
use std::sync::Arc;

use lagometer_adapter::ros2::{Places, Ros2Payload};
use lagometer_adapter::{Error, PayloadType, Result, Ros2Message, Span};
use lagometer_rustdds_common::message::{Bytes as BytesMessage, Image, Imu, Message, PointCloud2, Text};
use rustdds::bytes::Bytes;
use rustdds::no_key::{Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter};
use rustdds::serialization::Error as WireError;
use rustdds::{CDRDeserializerAdapter, CDRSerializerAdapter, RepresentationIdentifier};

const LENGTH_BYTES: usize = size_of::<u32>();
const FIXED_BYTES: [usize; 4] = [64, 1024, 65_536, 1_048_576];

/// How a payload is encoded, and what encodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `sequence<octet>`: its length, then the octets in bulk.
    Sequence,
    /// The same, octet by octet.
    SequenceBySerde,
    /// `octet[N]`: only the octets.
    Array,
    /// A ROS 2 message, through Serde.
    Message(Ros2Message),
}

impl Form {
    pub(crate) fn of(payload: PayloadType, bulk: bool) -> Self {
        match (payload.message, payload.fixed, bulk) {
            (Some(message), _, _) => Self::Message(message),
            (None, true, _) => Self::Array, // Serde has no array with this many octets
            (None, false, true) => Self::Sequence,
            (None, false, false) => Self::SequenceBySerde,
        }
    }
}

/// The name of the DDS type.
pub(crate) fn type_name(payload: PayloadType) -> Result<String> {
    if let Some(message) = payload.message {
        return Ok(message.dds_type().to_owned());
    }
    if !payload.fixed {
        return Ok("lagometer::Bytes".to_owned());
    }
    if !FIXED_BYTES.contains(&payload.bytes_max) {
        let why = format!("type fixed has 64, 1024, 65536 or 1048576 bytes, not {}", payload.bytes_max);
        return Err(Error::invalid(why));
    }
    Ok(format!("lagometer::Fixed{}", payload.bytes_max))
}

/// A message to be sent.
pub(crate) enum Outgoing {
    /// Octets in one of their forms, in a buffer that the writer reuses.
    Octets {
        buffer: Arc<Vec<u8>>,
        bytes: usize,
        form: Form,
    },
    /// Messages of ROS 2.
    Text(Text),
    Image(Image),
    Imu(Box<Imu>),
    PointCloud2(PointCloud2),
}

impl Outgoing {
    /// A ROS 2 message with this payload.
    pub(crate) fn message(message: Ros2Message, places: Places) -> Result<Self> {
        Ok(match message {
            Ros2Message::String => Self::Text(Text::of(places)?),
            Ros2Message::Image => Self::Image(Image::of(places)?),
            Ros2Message::Imu => Self::Imu(Box::new(Imu::of(places)?)),
            Ros2Message::PointCloud2 => Self::PointCloud2(PointCloud2::of(places)?),
        })
    }
}

/// Serialises sent messages.
pub(crate) struct Sending;

impl SerializerAdapter<Outgoing> for Sending {
    type Error = WireError;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(message: &Outgoing) -> std::result::Result<Bytes, WireError> {
        Span::of(|| wire_of(message)).0
    }
}

fn wire_of(message: &Outgoing) -> std::result::Result<Bytes, WireError> {
    match message {
        Outgoing::Octets { buffer, bytes, form } => wire_of_octets(&buffer[..*bytes], *form),
        Outgoing::Text(message) => <CDRSerializerAdapter<Text> as SerializerAdapter<Text>>::to_bytes(message),
        Outgoing::Image(message) => {
            <CDRSerializerAdapter<Image> as SerializerAdapter<Image>>::to_bytes(message)
        }
        Outgoing::Imu(message) => <CDRSerializerAdapter<Imu> as SerializerAdapter<Imu>>::to_bytes(message),
        Outgoing::PointCloud2(message) => {
            <CDRSerializerAdapter<PointCloud2> as SerializerAdapter<PointCloud2>>::to_bytes(message)
        }
    }
}

fn wire_of_octets(octets: &[u8], form: Form) -> std::result::Result<Bytes, WireError> {
    if form == Form::SequenceBySerde {
        return <CDRSerializerAdapter<&[u8]> as SerializerAdapter<&[u8]>>::to_bytes(&octets);
    }
    let mut wire = Vec::with_capacity(LENGTH_BYTES + octets.len());
    if form == Form::Sequence {
        wire.extend_from_slice(&(octets.len() as u32).to_le_bytes());
    }
    wire.extend_from_slice(octets);
    Ok(wire.into())
}

/// Converts a received message to a payload.
pub(crate) trait Reading: Clone + Send + 'static {
    fn payload(wire: &[u8], encoding: RepresentationIdentifier) -> std::result::Result<Places, WireError>;
}

/// The forms of received messages.
#[derive(Debug, Clone)]
pub(crate) struct Sequence;
#[derive(Debug, Clone)]
pub(crate) struct Array;
#[derive(Debug, Clone)]
pub(crate) struct AsMessage<M>(PhantomData<M>);
/// To Serde, the struct is the same as its content.
pub(crate) type SequenceBySerde = AsMessage<BytesMessage>;

fn octets_alone(octets: Vec<u8>) -> Places {
    Places { first: octets, second: Vec::new() }
}

impl Reading for Sequence {
    fn payload(wire: &[u8], encoding: RepresentationIdentifier) -> std::result::Result<Places, WireError> {
        let too_short = || WireError::Message("a sequence that is shorter than it says".to_owned());
        let (length, octets) = wire.split_first_chunk::<LENGTH_BYTES>().ok_or_else(too_short)?;
        let little = encoding == RepresentationIdentifier::CDR_LE;
        let length = if little { u32::from_le_bytes(*length) } else { u32::from_be_bytes(*length) };
        // The rest is padding.
        octets.get(..length as usize).map(|octets| octets_alone(octets.to_vec())).ok_or_else(too_short)
    }
}

impl<M: Message + Clone> Reading for AsMessage<M> {
    fn payload(wire: &[u8], encoding: RepresentationIdentifier) -> std::result::Result<Places, WireError> {
        CDRDeserializerAdapter::<M>::from_bytes(wire, encoding).map(Ros2Payload::into_places)
    }
}

impl Reading for Array {
    fn payload(wire: &[u8], _: RepresentationIdentifier) -> std::result::Result<Places, WireError> {
        Ok(octets_alone(wire.to_vec()))
    }
}

/// A received message, and when it was deserialised, if somebody asked.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    pub(crate) places: Places,
    pub(crate) deserialised: Option<Span>,
}

/// Deserialises received messages, in one of the forms.
pub(crate) struct Receiving<R>(PhantomData<R>);

/// The same for one message.
#[derive(Clone)]
pub(crate) struct Decoder<R>(PhantomData<R>);

impl<R: Reading> DeserializerAdapter<Incoming> for Receiving<R> {
    type Error = WireError;
    type Decoded = Incoming;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE, RepresentationIdentifier::CDR_BE]
    }

    fn transform_decoded(decoded: Incoming) -> Incoming {
        decoded
    }
}

impl<R: Reading> DefaultDecoder<Incoming> for Receiving<R> {
    type Decoder = Decoder<R>;
    const DECODER: Decoder<R> = Decoder(PhantomData);
}

impl<'de, R: Reading> Decode<'de, Incoming> for Decoder<R> {
    type Error = WireError;

    fn decode_bytes(
        self,
        wire: &'de [u8],
        encoding: RepresentationIdentifier,
    ) -> std::result::Result<Incoming, WireError> {
        let (places, deserialised) = Span::of(|| R::payload(wire, encoding));
        places.map(|places| Incoming { places, deserialised })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: RepresentationIdentifier = RepresentationIdentifier::CDR_LE;
    const BIG: RepresentationIdentifier = RepresentationIdentifier::CDR_BE;

    fn wire_with(octets: &[u8], form: Form) -> Bytes {
        let message = Outgoing::Octets { buffer: Arc::new(octets.to_vec()), bytes: octets.len(), form };
        Sending::to_bytes(&message).unwrap()
    }

    fn octets_of<R: Reading>(wire: &[u8], encoding: RepresentationIdentifier) -> Vec<u8> {
        R::payload(wire, encoding).unwrap().first
    }

    fn there_and_back<M: Message + Clone>(message: Ros2Message, bytes: usize) {
        let payload = PayloadType { fixed: false, bytes_max: bytes, message: Some(message) };
        assert_eq!(Form::of(payload, true), Form::Message(message));
        assert_eq!(type_name(payload).unwrap(), message.dds_type());
        let places = Places::new(payload, bytes);
        let wire = Sending::to_bytes(&Outgoing::message(message, places.clone()).unwrap()).unwrap();
        assert!(wire.len() > bytes);
        assert_eq!(AsMessage::<M>::payload(&wire, LITTLE).unwrap(), places);
        assert!(AsMessage::<M>::payload(&wire[..wire.len() / 2], LITTLE).is_err());
    }

    #[test]
    fn messages_of_ros_2_come_out_as_they_went_in() {
        there_and_back::<Text>(Ros2Message::String, 200);
        there_and_back::<Image>(Ros2Message::Image, 4_801);
        there_and_back::<Imu>(Ros2Message::Imu, 328);
        there_and_back::<PointCloud2>(Ros2Message::PointCloud2, 4_800);
    }

    #[test]
    fn in_bulk_and_through_serde_are_the_same_on_the_wire() {
        for length in [0, 1, 2, 3, 4, 5, 64, 1001] {
            let octets: Vec<u8> = (0..length).map(|place| place as u8).collect();
            let wire = wire_with(&octets, Form::Sequence);
            assert_eq!(wire, wire_with(&octets, Form::SequenceBySerde));
            assert_eq!(octets_of::<Sequence>(&wire, LITTLE), octets);
            assert_eq!(octets_of::<SequenceBySerde>(&wire, LITTLE), octets);
        }
    }

    #[test]
    fn padding_is_no_part_of_a_sequence_and_the_other_order_of_bytes_is_read() {
        assert_eq!(octets_of::<Sequence>(&[1, 0, 0, 0, 7, 0, 0, 0], LITTLE), [7]);
        assert_eq!(octets_of::<Sequence>(&[0, 0, 0, 2, 7, 8], BIG), [7, 8]);
    }

    #[test]
    fn a_sequence_that_is_cut_off_is_refused() {
        let wire = wire_with(&[1, 2, 3, 4, 5], Form::Sequence);
        for length in 0..wire.len() {
            assert!(Sequence::payload(&wire[..length], LITTLE).is_err(), "{length}");
        }
    }

    #[test]
    fn an_array_is_its_octets() {
        let octets = [5; 64];
        assert_eq!(wire_with(&octets, Form::Array)[..], octets);
        assert_eq!(octets_of::<Array>(&octets, LITTLE), octets);
    }
}
