// SPDX-License-Identifier: Apache-2.0
//! The payload types on the wire, CDR version 1, under the names that the adapters `cyclonedds` and `fastdds` use.
//!
//! Through Serde and RustDDS's own adapter a `Vec<u8>` goes octet by octet. An application may bring an adapter of its
//! own, which takes them all at once, as other vendors' generated code does.
use std::marker::PhantomData;
use std::sync::Arc;

use lagometer_adapter::{Error, PayloadType, Result};
use rustdds::bytes::Bytes;
use rustdds::no_key::{Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter};
use rustdds::serialization::Error as WireError;
use rustdds::{CDRDeserializerAdapter, CDRSerializerAdapter, RepresentationIdentifier};

const LENGTH_BYTES: usize = size_of::<u32>();
const FIXED_BYTES: [usize; 4] = [64, 1024, 65_536, 1_048_576];

/// How a payload is laid out, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `sequence<octet>`: its length, then the octets in bulk.
    Sequence,
    /// The same, octet by octet.
    SequenceBySerde,
    /// `octet[N]`: the octets alone.
    Array,
}

impl Form {
    pub(crate) fn of(payload: PayloadType, bulk: bool) -> Self {
        match (payload.fixed, bulk) {
            (true, _) => Self::Array, // Serde knows no array of so many octets
            (false, true) => Self::Sequence,
            (false, false) => Self::SequenceBySerde,
        }
    }
}

/// The name of the DDS type.
pub(crate) fn type_name(payload: PayloadType) -> Result<String> {
    if !payload.fixed {
        return Ok("lagometer::Bytes".to_owned());
    }
    if !FIXED_BYTES.contains(&payload.bytes_max) {
        let why = format!("type fixed has 64, 1024, 65536 or 1048576 bytes, not {}", payload.bytes_max);
        return Err(Error::invalid(why));
    }
    Ok(format!("lagometer::Fixed{}", payload.bytes_max))
}

/// A message to be sent, in a buffer that the writer uses again.
pub(crate) struct Outgoing {
    pub(crate) buffer: Arc<Vec<u8>>,
    pub(crate) bytes: usize,
    pub(crate) form: Form,
}

/// Serialises what is sent.
pub(crate) struct Sending;

impl SerializerAdapter<Outgoing> for Sending {
    type Error = WireError;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(message: &Outgoing) -> std::result::Result<Bytes, WireError> {
        let octets = &message.buffer[..message.bytes];
        if message.form == Form::SequenceBySerde {
            return <CDRSerializerAdapter<&[u8]> as SerializerAdapter<&[u8]>>::to_bytes(&octets);
        }
        let mut wire = Vec::with_capacity(LENGTH_BYTES + octets.len());
        if message.form == Form::Sequence {
            wire.extend_from_slice(&(octets.len() as u32).to_le_bytes());
        }
        wire.extend_from_slice(octets);
        Ok(wire.into())
    }
}

/// What makes octets of a message that came.
pub(crate) trait Reading: Clone + Send + 'static {
    fn octets(wire: &[u8], encoding: RepresentationIdentifier) -> std::result::Result<Vec<u8>, WireError>;
}

/// The three forms, of what is received.
#[derive(Debug, Clone)]
pub(crate) struct Sequence;
#[derive(Debug, Clone)]
pub(crate) struct SequenceBySerde;
#[derive(Debug, Clone)]
pub(crate) struct Array;

impl Reading for Sequence {
    fn octets(wire: &[u8], encoding: RepresentationIdentifier) -> std::result::Result<Vec<u8>, WireError> {
        let too_short = || WireError::Message("a sequence that is shorter than it says".to_owned());
        let (length, octets) = wire.split_first_chunk::<LENGTH_BYTES>().ok_or_else(too_short)?;
        let little = encoding == RepresentationIdentifier::CDR_LE;
        let length = if little { u32::from_le_bytes(*length) } else { u32::from_be_bytes(*length) };
        // What lies behind it is padding.
        octets.get(..length as usize).map(<[u8]>::to_vec).ok_or_else(too_short)
    }
}

impl Reading for SequenceBySerde {
    fn octets(wire: &[u8], encoding: RepresentationIdentifier) -> std::result::Result<Vec<u8>, WireError> {
        CDRDeserializerAdapter::<Vec<u8>>::from_bytes(wire, encoding)
    }
}

impl Reading for Array {
    fn octets(wire: &[u8], _: RepresentationIdentifier) -> std::result::Result<Vec<u8>, WireError> {
        Ok(wire.to_vec())
    }
}

/// Deserialises what is received, in one of the forms.
pub(crate) struct Receiving<R>(PhantomData<R>);

/// The same for one message.
#[derive(Clone)]
pub(crate) struct Decoder<R>(PhantomData<R>);

impl<R: Reading> DeserializerAdapter<Vec<u8>> for Receiving<R> {
    type Error = WireError;
    type Decoded = Vec<u8>;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE, RepresentationIdentifier::CDR_BE]
    }

    fn transform_decoded(decoded: Vec<u8>) -> Vec<u8> {
        decoded
    }
}

impl<R: Reading> DefaultDecoder<Vec<u8>> for Receiving<R> {
    type Decoder = Decoder<R>;
    const DECODER: Decoder<R> = Decoder(PhantomData);
}

impl<'de, R: Reading> Decode<'de, Vec<u8>> for Decoder<R> {
    type Error = WireError;

    fn decode_bytes(
        self,
        wire: &'de [u8],
        encoding: RepresentationIdentifier,
    ) -> std::result::Result<Vec<u8>, WireError> {
        R::octets(wire, encoding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: RepresentationIdentifier = RepresentationIdentifier::CDR_LE;
    const BIG: RepresentationIdentifier = RepresentationIdentifier::CDR_BE;

    fn wire_of(octets: &[u8], form: Form) -> Bytes {
        let message = Outgoing { buffer: Arc::new(octets.to_vec()), bytes: octets.len(), form };
        Sending::to_bytes(&message).unwrap()
    }

    #[test]
    fn in_bulk_and_through_serde_are_the_same_on_the_wire() {
        for length in [0, 1, 2, 3, 4, 5, 64, 1001] {
            let octets: Vec<u8> = (0..length).map(|place| place as u8).collect();
            let wire = wire_of(&octets, Form::Sequence);
            assert_eq!(wire, wire_of(&octets, Form::SequenceBySerde));
            assert_eq!(Sequence::octets(&wire, LITTLE).unwrap(), octets);
            assert_eq!(SequenceBySerde::octets(&wire, LITTLE).unwrap(), octets);
        }
    }

    #[test]
    fn padding_is_no_part_of_a_sequence_and_the_other_order_of_bytes_is_read() {
        assert_eq!(Sequence::octets(&[1, 0, 0, 0, 7, 0, 0, 0], LITTLE).unwrap(), [7]);
        assert_eq!(Sequence::octets(&[0, 0, 0, 2, 7, 8], BIG).unwrap(), [7, 8]);
    }

    #[test]
    fn a_sequence_that_is_cut_off_is_refused() {
        let wire = wire_of(&[1, 2, 3, 4, 5], Form::Sequence);
        for length in 0..wire.len() {
            assert!(Sequence::octets(&wire[..length], LITTLE).is_err(), "{length}");
        }
    }

    #[test]
    fn an_array_is_its_octets() {
        let octets = [5; 64];
        assert_eq!(wire_of(&octets, Form::Array)[..], octets);
        assert_eq!(Array::octets(&octets, LITTLE).unwrap(), octets);
    }
}
