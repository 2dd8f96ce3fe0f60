// SPDX-License-Identifier: Apache-2.0
//! A context is one participant, created by `enable`; each of lagometer's nodes in it is a ROS 2 node.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lagometer_adapter::ros2::node_name;
use lagometer_adapter::{Context, ContextConfig, Description, Doing, Endpoint, Error, Result, Ros2Message};
use lagometer_rustdds_common::{domain, Participant, SharedParticipant};
use ros2_client::qos::QosProfile;
use ros2_client::{MessageTypeName, Name, Node, NodeName, NodeOptions};
use rustdds::{QosPolicies, Topic};

use crate::settings::Settings;

/// For the payload type `bytes`, which is not a ROS 2 message: the same in every DDS adapter.
const BYTES_TYPE_NAME: &str = "lagometer::Bytes";

/// One participant.
pub(crate) struct Ros2Context {
    settings: Settings,
    domain: u16,
    nodes: SharedNodes,
    participant: SharedParticipant,
}

/// A participant's nodes, which create its endpoints, once it exists.
pub(crate) type SharedNodes = Arc<OnceLock<Nodes>>;

/// Nodes by lagometer's names.
pub(crate) struct Nodes {
    made: Mutex<BTreeMap<String, Node>>,
    rosout: bool,
    context: ros2_client::Context,
}

impl Ros2Context {
    pub(crate) fn new(config: &ContextConfig) -> Result<Self> {
        Ok(Self {
            settings: Settings::new(config),
            domain: domain(config)?,
            nodes: Arc::default(),
            participant: Arc::default(),
        })
    }

    pub(crate) fn participant(&self) -> SharedParticipant {
        self.participant.clone()
    }

    pub(crate) fn nodes(&self) -> SharedNodes {
        self.nodes.clone()
    }
}

impl Context for Ros2Context {
    fn enable(&self) -> Result<()> {
        let participant = Participant::new(self.domain, &self.settings.sockets)?;
        let context = ros2_client::Context::from_domain_participant(participant.domain_participant().clone())
            .doing("making the context")?;
        participant.share(&self.participant)?;
        let nodes = Nodes { made: Mutex::default(), rosout: self.settings.rosout, context };
        self.nodes.set(nodes).map_err(|_| Error::invalid("a context enabled twice"))
    }

    fn describe(&self) -> Description {
        Participant::describe(&self.participant, self.settings.describe(self.domain))
    }
}

impl Nodes {
    /// The nodes of the participant whose endpoint is being enabled.
    pub(crate) fn of(shared: &SharedNodes) -> Result<&Self> {
        shared.get().ok_or_else(|| Error::invalid("an endpoint enabled before its context"))
    }

    /// Uses a node and a topic to create an endpoint.
    pub(crate) fn make<T>(
        &self,
        participant: &Participant,
        wanted: &Wanted,
        make: impl FnOnce(&mut Node, &Topic) -> Result<T>,
    ) -> Result<T> {
        self.within(&wanted.node, |node| {
            let topic = topic(participant, node, wanted)?;
            make(node, &topic)
        })
    }

    /// Uses a node to create something.
    pub(crate) fn within<T>(&self, name: &str, make: impl FnOnce(&mut Node) -> Result<T>) -> Result<T> {
        let mut nodes = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !nodes.contains_key(name) {
            nodes.insert(name.to_owned(), self.node(name)?);
        }
        match nodes.get_mut(name) {
            Some(node) => make(node),
            None => Err(Error::failed("a node that was just made is gone")),
        }
    }

    fn node(&self, name: &str) -> Result<Node> {
        let doing = format!("making the node '{name}'");
        let name = NodeName::new("/", &node_name(name))
            .map_err(|error| Error::invalid(format!("{doing}: {error:?}")))?;
        let options = NodeOptions::new().enable_rosout(self.rosout);
        self.context.new_node(name, options).map_err(|error| Error::failed(format!("{doing}: {error:?}")))
    }
}

fn topic(participant: &Participant, node: &Node, wanted: &Wanted) -> Result<Topic> {
    let Some(message) = wanted.message else {
        return participant.topic(&wanted.topic, BYTES_TYPE_NAME, &QosPolicies::from(&wanted.profile));
    };
    let (package, name) = match message {
        Ros2Message::String => ("std_msgs", "String"),
        Ros2Message::Image => ("sensor_msgs", "Image"),
        Ros2Message::Imu => ("sensor_msgs", "Imu"),
        Ros2Message::PointCloud2 => ("sensor_msgs", "PointCloud2"),
    };
    let (namespace, base) = match wanted.topic.rsplit_once('/') {
        Some((namespace, base)) => (format!("/{namespace}"), base),
        None => ("/".to_owned(), wanted.topic.as_str()),
    };
    let doing = format!("making the topic '{}'", wanted.topic);
    let topic = Name::new(&namespace, base).map_err(|error| Error::invalid(format!("{doing}: {error:?}")))?;
    node.create_topic(&topic, MessageTypeName::new(package, name), &wanted.profile).doing(doing)
}

/// The configuration for both kinds of endpoint.
pub(crate) struct Wanted {
    pub(crate) node: String,
    pub(crate) topic: String,
    pub(crate) message: Option<Ros2Message>,
    pub(crate) profile: QosProfile,
}

impl Wanted {
    pub(crate) fn new(endpoint: &Endpoint, vendors: QosProfile) -> Result<Self> {
        Ok(Self {
            node: endpoint.node.clone(),
            topic: endpoint.topic.clone(),
            message: endpoint.payload.message,
            profile: crate::quality::profile(vendors, endpoint)?,
        })
    }
}
