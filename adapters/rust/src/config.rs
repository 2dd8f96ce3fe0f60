// SPDX-License-Identifier: Apache-2.0
//! The caller's configuration, in checked Rust types.
use std::ffi::c_void;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::{abi, host, Error, Options, Result, Sidecar};

/// The smallest payload, which only has room for the envelope's short form.
const PAYLOAD_BYTES_MIN: u64 = abi::PAYLOAD_BYTES_MIN as u64;
/// How long a reliable writer may wait for room if the caller does not say.
const BLOCKING_DEFAULT: Duration = Duration::from_millis(100);

/// Which settings a context starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As the vendor ships it, except for what isolation requires.
    Default,
    /// The same settings for all middleware, as far as each allows (docs/ADAPTERS.md).
    Matched,
}

/// The configuration of a context.
#[derive(Debug)]
pub struct ContextConfig {
    /// Contexts of different domains do not communicate.
    pub domain: u32,
    /// A name for humans.
    pub name: String,
    /// Which settings to start from.
    pub profile: Profile,
    /// The adapter's own options, checked against its sidecar.
    pub options: Options,
    /// Private to the trial, on a tmpfs, removed by lagometer.
    pub runtime_directory: PathBuf,
    /// How many contexts the trial has, if known.
    pub peers: Option<usize>,
    /// The link to the trial's other hosts. None: there are no others, or nobody knows how to reach them.
    pub link: Option<Link>,
}

/// This host's link to the trial's other hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// This host's address on the link.
    pub address: Ipv4Addr,
    /// Distinguishes this trial from others on the same link.
    pub trial: String,
}

impl Link {
    fn read(network: &Value) -> Result<Option<Self>> {
        let Some(address) = network["address"].as_str() else { return Ok(None) };
        let address = address
            .parse()
            .map_err(|error| Error::invalid(format!("the address of this host, '{address}': {error}")))?;
        Ok(Some(Self { address, trial: network["trial"].as_str().unwrap_or_default().to_owned() }))
    }

    /// A number below `count` for this trial: the same in each of its processes (FNV-1a).
    pub fn number(&self, count: u16) -> u16 {
        let hash = self
            .trial
            .bytes()
            .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        (hash % u32::from(count.max(1))) as u16
    }
}

impl ContextConfig {
    /// # Safety
    /// `given` points at a configuration whose texts are valid.
    pub(crate) unsafe fn read(sidecar: &Sidecar, given: *const abi::ContextConfig) -> Result<Self> {
        // SAFETY: the caller's promise.
        let given = unsafe { read("configuration of the context", given, abi::CONTEXT_CONFIG_SIZE_1_0) }?;
        // SAFETY: the caller's promise, for each of the texts.
        let [name, profile, options, folder, security, network] = unsafe {
            [given.name, given.profile, given.options, given.runtime_directory, given.security, given.network]
                .map(|text| host::owned(text))
        };
        if !security.is_empty() && security != "{}" {
            return Err(Error::unsupported("this adapter has no security settings: leave them out"));
        }
        let profile = match profile.as_str() {
            "" | "default" => Profile::Default,
            "matched" => Profile::Matched,
            other => return Err(Error::invalid(format!("no profile '{other}'; valid: default, matched"))),
        };
        if folder.is_empty() {
            return Err(Error::invalid("no runtime directory given"));
        }
        let network: Value = serde_json::from_str(&network).unwrap_or(Value::Null);
        Ok(Self {
            domain: given.domain,
            name,
            profile,
            options: sidecar.options(&options)?,
            runtime_directory: PathBuf::from(folder),
            peers: network["peers"].as_u64().map(|peers| peers as usize),
            link: Link::read(&network)?,
        })
    }

    /// The adapter's folder for this domain in the runtime directory; created if it does not exist.
    pub fn own_folder(&self, adapter: &str) -> Result<PathBuf> {
        let folder = self.runtime_directory.join(self.domain.to_string()).join(adapter);
        std::fs::create_dir_all(&folder)
            .map_err(|error| Error::failed(format!("making {}: {error}", folder.display())))?;
        Ok(folder)
    }
}

/// A ROS 2 message that carries a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ros2Message {
    /// `std_msgs/String`: the text.
    String,
    /// `sensor_msgs/Image`: `data`.
    Image,
    /// `sensor_msgs/Imu`: the text of `header.frame_id`, then the 37 numbers, one region each.
    Imu,
    /// `sensor_msgs/PointCloud2`: `data`.
    PointCloud2,
}

impl Ros2Message {
    const ALL: [Self; 4] = [Self::String, Self::Image, Self::Imu, Self::PointCloud2];

    /// The payload type.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Image => "Image",
            Self::Imu => "Imu",
            Self::PointCloud2 => "PointCloud2",
        }
    }

    /// The name of its type in DDS, as used by the rmw layers of ROS 2.
    pub fn dds_type(self) -> &'static str {
        match self {
            Self::String => "std_msgs::msg::dds_::String_",
            Self::Image => "sensor_msgs::msg::dds_::Image_",
            Self::Imu => "sensor_msgs::msg::dds_::Imu_",
            Self::PointCloud2 => "sensor_msgs::msg::dds_::PointCloud2_",
        }
    }

    /// The DDS name of a ROS 2 topic.
    pub fn dds_topic(topic: &str) -> String {
        format!("rt/{topic}")
    }

    /// Whether it can have a payload of this many bytes.
    fn has_size(self, bytes: u64) -> bool {
        match self {
            Self::String => bytes >= PAYLOAD_BYTES_MIN,
            Self::Image => true,
            Self::Imu => bytes == u64::from(abi::IMU_BYTES),
            Self::PointCloud2 => bytes.is_multiple_of(u64::from(abi::POINT_BYTES)),
        }
    }
}

/// A payload type: `fixed` only has the length `bytes_max`; the others have any length that the type allows
/// up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadType {
    /// Exactly `bytes_max`.
    pub fixed: bool,
    /// The largest payload, including the envelope.
    pub bytes_max: usize,
    /// The ROS 2 message, if it is neither `bytes` nor `fixed`.
    pub message: Option<Ros2Message>,
}

impl PayloadType {
    /// # Safety
    /// `given` points at a configuration whose texts are valid.
    pub(crate) unsafe fn read(sidecar: &Sidecar, given: *const abi::TypeConfig) -> Result<Self> {
        // SAFETY: the caller's promise.
        let given = unsafe { read("configuration of the type", given, abi::TYPE_CONFIG_SIZE_1_0) }?;
        // SAFETY: the caller's promise.
        let name = unsafe { host::owned(given.name) };
        sidecar.check_type(&name)?;
        let message = Ros2Message::ALL.into_iter().find(|message| message.name() == name);
        if given.flags & !abi::TYPE_KEYED != 0 {
            return Err(Error::invalid(format!("a type with unknown flags {:#x}", given.flags)));
        }
        if given.flags != 0 || given.encapsulation != 0 {
            return Err(Error::unsupported("keyed and opaque types are not supported"));
        }
        if given.max_bytes < PAYLOAD_BYTES_MIN || given.max_bytes > u64::from(u32::MAX) {
            let why =
                format!("a payload has {PAYLOAD_BYTES_MIN} to {} bytes, not {}", u32::MAX, given.max_bytes);
            return Err(Error::invalid(why));
        }
        if message.is_some_and(|message| !message.has_size(given.max_bytes)) {
            return Err(Error::invalid(format!("a message '{name}' can't have {} bytes", given.max_bytes)));
        }
        sidecar.check_limit(given.max_bytes as usize)?;
        Ok(Self { fixed: name == "fixed", bytes_max: given.max_bytes as usize, message })
    }

    /// Its name in a study.
    pub fn name(self) -> &'static str {
        match self.message {
            Some(message) => message.name(),
            None if self.fixed => "fixed",
            None => "bytes",
        }
    }

    /// The length of a message; fails if the type does not allow it.
    pub(crate) fn accept(self, bytes: u64) -> Result<usize> {
        let most = self.bytes_max as u64;
        let fits = self.message.is_none_or(|message| message.has_size(bytes));
        if !fits || bytes > most || bytes < PAYLOAD_BYTES_MIN || (self.fixed && bytes != most) {
            return Err(Error::invalid(format!(
                "a message of {bytes} B does not fit type '{}' of {most} B",
                self.name()
            )));
        }
        Ok(bytes as usize)
    }
}

/// How many past messages a reader keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The newest ones, this many, at least 1.
    KeepLast(usize),
    /// All that were not taken yet.
    KeepAll,
}

/// Quality of service. None: the vendor's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qos {
    /// Whether no message may be lost on the way.
    pub reliable: Option<bool>,
    /// How many messages are kept.
    pub history: Option<History>,
    /// Whether late readers get messages that were sent before.
    pub transient_local: Option<bool>,
    /// The longest time that a commit may wait for room.
    pub blocking_max: Duration,
}

impl Qos {
    /// # Safety
    /// `given` is null or points at a quality of service.
    unsafe fn read(given: *const abi::Qos) -> Result<Self> {
        let mut qos =
            Self { reliable: None, history: None, transient_local: None, blocking_max: BLOCKING_DEFAULT };
        if given.is_null() {
            return Ok(qos);
        }
        // SAFETY: the caller's promise.
        let given = unsafe { read("qualities of service", given, abi::QOS_SIZE_1_0) }?;
        let supported = abi::QOS_RELIABILITY | abi::QOS_HISTORY | abi::QOS_DURABILITY;
        let named = abi::QOS_DEADLINE | abi::QOS_LIFESPAN | abi::QOS_LIVELINESS | abi::QOS_PARTITION;
        if given.present & !(supported | named) != 0 {
            return Err(Error::invalid(format!("unknown qualities of service: {:#x}", given.present)));
        }
        if given.present & named != 0 {
            return Err(Error::unsupported("only reliability, history and durability can be set"));
        }
        if given.present & abi::QOS_RELIABILITY != 0 {
            qos.reliable = Some(given.reliability != 0);
            if given.blocking_ns_max > 0 {
                qos.blocking_max = Duration::from_nanos(given.blocking_ns_max.unsigned_abs());
            }
        }
        if given.present & abi::QOS_HISTORY != 0 {
            qos.history = Some(match (given.history, given.depth) {
                (0, 0) => return Err(Error::invalid("keep_last needs a depth of at least 1")),
                (0, depth) => History::KeepLast(depth as usize),
                _ => History::KeepAll,
            });
        }
        if given.present & abi::QOS_DURABILITY != 0 {
            qos.transient_local = Some(given.durability != 0);
        }
        Ok(qos)
    }
}

/// How a reader's messages reach the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// The engine takes whenever it likes.
    Poll,
    /// The reader will be attached to a waitset.
    Waitset,
    /// The middleware's own thread calls `on_data`.
    Listener,
}

/// The function to call when a reader has data to take. Any thread may call it, one at a time per reader.
#[derive(Debug, Clone, Copy)]
pub struct OnData {
    function: abi::DataFunction,
    user: *mut c_void,
}

// SAFETY: the header allows the call on any thread; the engine keeps `user` valid until the reader is destroyed.
unsafe impl Send for OnData {}
// SAFETY: as above; nothing of this struct changes.
unsafe impl Sync for OnData {}

impl OnData {
    /// Notifies the engine. Calls for one reader must not overlap.
    #[inline]
    pub fn call(self) {
        (self.function)(self.user);
    }
}

/// The configuration of a writer or a reader.
#[derive(Debug)]
pub struct Endpoint {
    /// The name of its node.
    pub node: String,
    /// Its name in the study.
    pub topic: String,
    /// The type of its messages.
    pub payload: PayloadType,
    /// Quality of service.
    pub qos: Qos,
    /// Readers: how messages reach the engine.
    pub dispatch: Dispatch,
    /// Readers with dispatch by listener.
    pub on_data: Option<OnData>,
}

impl Endpoint {
    /// # Safety
    /// `given` points at a configuration whose texts and pointers are valid; its type is `payload`.
    pub(crate) unsafe fn read(node: &str, payload: PayloadType, given: &abi::EndpointConfig) -> Result<Self> {
        // SAFETY: the caller's promise.
        let topic = unsafe { host::owned(given.topic) };
        let dispatch = match given.dispatch {
            0 => Dispatch::Poll,
            1 => Dispatch::Waitset,
            2 => Dispatch::Listener,
            other => return Err(Error::invalid(format!("topic '{topic}': unknown dispatch {other}"))),
        };
        if given.flags != 0 {
            return Err(Error::invalid(format!("topic '{topic}': unknown flags {:#x}", given.flags)));
        }
        let on_data = given.on_data.map(|function| OnData { function, user: given.user });
        if dispatch == Dispatch::Listener && on_data.is_none() {
            return Err(Error::invalid(format!("topic '{topic}': dispatch by listener without on_data")));
        }
        // SAFETY: the caller's promise.
        let qos = unsafe { Qos::read(given.qos) }
            .map_err(|error| Error { message: format!("topic '{topic}': {}", error.message), ..error })?;
        Ok(Self { node: node.to_owned(), topic, payload, qos, dispatch, on_data })
    }
}

/// A host's configuration as this crate knows it, whatever its size there.
///
/// # Safety
/// `given` is null or points at a struct that is as long as its first field, `size`, says.
pub(crate) unsafe fn read<Struct>(what: &str, given: *const Struct, size_1_0: usize) -> Result<Struct> {
    if given.is_null() {
        return Err(Error::invalid(format!("no {what}")));
    }
    // SAFETY: the caller's promise.
    let size = unsafe { given.cast::<u32>().read() } as usize;
    if size < size_1_0 {
        return Err(Error::invalid(format!("a {what} of {size} bytes, its first version had {size_1_0}")));
    }
    // SAFETY: the caller's promise; zeros mean absent in every struct of the ABI.
    Ok(unsafe { host::whole(given) })
}
