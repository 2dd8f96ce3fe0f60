// SPDX-License-Identifier: Apache-2.0
//! Which type a payload has, under the names used by the adapters `cyclonedds` and `fastdds`. On the wire it
//! is CDR version 1, which Dust DDS generates from types described by its own macro.
use dust_dds::infrastructure::type_support::DdsType;
use lagometer_adapter::ros2::{Places, Ros2Payload};
use lagometer_adapter::{Error, PayloadType, Result, Ros2Message};

/// `octet[N]`.
macro_rules! fixed {
    ($($name:ident: $bytes:literal),*) => {$(
        #[derive(Debug, Clone, DdsType)]
        pub(crate) struct $name {
            data: [u8; $bytes],
        }

        impl Ros2Payload for $name {
            fn of(places: Places) -> Result<Self> {
                let data = places.first.try_into();
                Ok(Self { data: data.map_err(|_| Error::invalid("a fixed payload has one length"))? })
            }
            fn into_places(self) -> Places {
                Places { first: self.data.to_vec(), second: Vec::new() }
            }
        }
    )*};
}

fixed!(Fixed64: 64, Fixed1024: 1024, Fixed65536: 65_536);

/// Which of the types a payload has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A sequence of octets.
    Bytes,
    /// An array of 64 octets, and so on.
    Fixed64,
    Fixed1024,
    Fixed65536,
    /// A ROS 2 message.
    Message(Ros2Message),
}

impl Form {
    pub(crate) fn of(payload: PayloadType) -> Result<Self> {
        if let Some(message) = payload.message {
            return Ok(Self::Message(message));
        }
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
            Self::Message(message) => message.dds_type(),
        }
    }

    /// The DDS name of a topic with it.
    pub(crate) fn topic(self, topic: &str) -> String {
        match self {
            Self::Message(_) => Ros2Message::dds_topic(topic),
            _ => topic.to_owned(),
        }
    }
}

/// `self.make::<M>()` with the type `M` that belongs to a form.
macro_rules! for_form {
    ($form:expr, $object:ident.$make:ident) => {
        match $form {
            $crate::form::Form::Bytes => $object.$make::<$crate::message::Bytes>(),
            $crate::form::Form::Fixed64 => $object.$make::<$crate::form::Fixed64>(),
            $crate::form::Form::Fixed1024 => $object.$make::<$crate::form::Fixed1024>(),
            $crate::form::Form::Fixed65536 => $object.$make::<$crate::form::Fixed65536>(),
            $crate::form::Form::Message(message) => match message {
                ::lagometer_adapter::Ros2Message::String => $object.$make::<$crate::message::Text>(),
                ::lagometer_adapter::Ros2Message::Image => $object.$make::<$crate::message::Image>(),
                ::lagometer_adapter::Ros2Message::Imu => $object.$make::<$crate::message::Imu>(),
                ::lagometer_adapter::Ros2Message::PointCloud2 => {
                    $object.$make::<$crate::message::PointCloud2>()
                }
            },
        }
    };
}
pub(crate) use for_form;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_payload_comes_out_as_it_went_in() {
        let places = Places { first: (0..64).collect(), second: Vec::new() };
        assert_eq!(Fixed64::of(places.clone()).unwrap().into_places(), places);
        assert!(Fixed1024::of(places).is_err());
    }

    #[test]
    fn messages_of_ros_2_have_its_names() {
        let payload = PayloadType { fixed: false, bytes_max: 328, message: Some(Ros2Message::Imu) };
        let form = Form::of(payload).unwrap();
        assert_eq!(form.type_name(), "sensor_msgs::msg::dds_::Imu_");
        assert_eq!((form.topic("t"), Form::Bytes.topic("t")), ("rt/t".to_owned(), "t".to_owned()));
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
