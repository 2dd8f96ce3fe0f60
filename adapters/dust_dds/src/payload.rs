// SPDX-License-Identifier: Apache-2.0
//! The payload types, under the names that the adapters `cyclonedds` and `fastdds` use; what is on the wire is CDR
//! version 1, made by Dust DDS of types that its own macro describes.
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::xtypes::type_support::TypeSupport;
use lagometer_adapter::{Error, PayloadType, Result};

/// What a message of any of the types is made from, and what becomes of it.
pub(crate) trait Message: TypeSupport + Send + Sync + 'static {
    /// A message with this payload, which has a length that the type allows.
    fn of(octets: Vec<u8>) -> Self;
    /// Its payload.
    fn into_octets(self) -> Vec<u8>;
}

/// `sequence<octet>`.
#[derive(Debug, Clone, DdsType)]
pub(crate) struct Bytes {
    data: Vec<u8>,
}

impl Message for Bytes {
    fn of(octets: Vec<u8>) -> Self {
        Self { data: octets }
    }
    fn into_octets(self) -> Vec<u8> {
        self.data
    }
}

/// `octet[N]`.
macro_rules! fixed {
    ($($name:ident: $bytes:literal),*) => {$(
        #[derive(Debug, Clone, DdsType)]
        pub(crate) struct $name {
            data: [u8; $bytes],
        }

        impl Message for $name {
            fn of(octets: Vec<u8>) -> Self {
                Self { data: octets.try_into().expect("a fixed payload has one length") }
            }
            fn into_octets(self) -> Vec<u8> {
                self.data.to_vec()
            }
        }
    )*};
}

fixed!(Fixed64: 64, Fixed1024: 1024, Fixed65536: 65_536);

/// Which of the types a payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A sequence of octets.
    Bytes,
    /// An array of 64 octets, and so on.
    Fixed64,
    Fixed1024,
    Fixed65536,
}

impl Form {
    pub(crate) fn of(payload: PayloadType) -> Result<Self> {
        match (payload.fixed, payload.bytes_max) {
            (false, _) => Ok(Self::Bytes),
            (true, 64) => Ok(Self::Fixed64),
            (true, 1024) => Ok(Self::Fixed1024),
            (true, 65_536) => Ok(Self::Fixed65536),
            (true, other) => {
                let why = format!("type fixed has 64, 1024 or 65536 bytes here, not {other}");
                Err(Error::invalid(why))
            }
        }
    }

    /// The name of the DDS type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Bytes => "lagometer::Bytes",
            Self::Fixed64 => "lagometer::Fixed64",
            Self::Fixed1024 => "lagometer::Fixed1024",
            Self::Fixed65536 => "lagometer::Fixed65536",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_out_as_it_went_in() {
        let octets: Vec<u8> = (0..64).collect();
        assert_eq!(Bytes::of(octets.clone()).into_octets(), octets);
        assert_eq!(Fixed64::of(octets.clone()).into_octets(), octets);
    }

    #[test]
    fn sizes_that_fixed_does_not_have_are_refused() {
        for (fixed, bytes_max, there) in
            [(true, 64, true), (true, 65, false), (true, 1_048_576, false), (false, 65, true)]
        {
            let payload = PayloadType { fixed, bytes_max, message: None };
            assert_eq!(Form::of(payload).is_ok(), there, "{bytes_max}");
        }
    }
}
