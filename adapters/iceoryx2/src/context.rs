// SPDX-License-Identifier: Apache-2.0
//! A context is one iceoryx2 node, with a configuration that keeps its files in the trial's own folder.
use std::sync::{Once, OnceLock};

use iceoryx2::port::event_id::EventId;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use lagometer_adapter::{
    host_log, Context, ContextConfig, Description, Doing, Endpoint, Error, Level, Result,
};

use crate::quality::Quality;
use crate::services::{under_way, Calls, Locked};

/// One thread at a time uses a port, so the variant without a mutex is enough: an application with a thread
/// per node would use it, too.
pub(crate) type Service = ipc::Service;
/// The factory of a topic's publishers and subscribers.
pub(crate) type Messages = publish_subscribe::PortFactory<Service, [u8], ()>;
/// The factory of a topic's notifiers and listeners.
pub(crate) type Events = event::PortFactory<Service>;

/// For a service, in the vendor's configuration.
const PUBLISHERS_DEFAULT: usize = 2;
const SUBSCRIBERS_DEFAULT: usize = 8;
const NODES_DEFAULT: usize = 20;
/// Listeners and notifiers of an event service in the vendor's configuration.
const EVENT_PORTS_DEFAULT: usize = 16;
const EVENT_NODES_DEFAULT: usize = 36;
/// The minimum that each of them is raised to: room for a fan-in of this width.
const PUBLISHERS_MIN: usize = 16;

/// How many ports and nodes a service has room for.
#[derive(Debug, Clone, Copy)]
struct Room {
    publishers: usize,
    subscribers: usize,
    nodes: usize,
}

/// One iceoryx2 node and, with services, a second one for ports of another variant.
#[derive(Debug)]
pub(crate) struct Iceoryx2Context {
    node: Node<Service>,
    calling: OnceLock<Node<Locked>>,
    settings: Config,
    name: String,
    room: Room,
    prefix: String,
    root: String,
    keep_all_messages: Option<usize>,
}

impl Iceoryx2Context {
    pub(crate) fn new(config: &ContextConfig) -> Result<Self> {
        route_log();
        let root = config.own_folder("iceoryx2")?;
        let root = root.to_str().ok_or_else(|| Error::invalid("the runtime directory's name is no UTF-8"))?;
        let prefix = format!("iox2_{}_", config.domain);
        let mut settings = Config::default();
        settings.global.set_root_path(&Path::new(root.as_bytes()).doing("naming the root path")?);
        settings.global.prefix = FileName::new(prefix.as_bytes()).doing("naming the prefix")?;
        let node = new_node::<Service>(&settings, &config.name)?;
        let peers = config.peers.unwrap_or(0);
        let asked = |name: &str| config.options.integer(name).map(|count| count as usize);
        let room = Room {
            publishers: asked("max_publishers").unwrap_or(PUBLISHERS_MIN.max(peers)),
            subscribers: asked("max_subscribers").unwrap_or(SUBSCRIBERS_DEFAULT.max(peers)),
            nodes: NODES_DEFAULT.max(peers + 1),
        };
        Ok(Self {
            node,
            calling: OnceLock::new(),
            name: config.name.clone(),
            room,
            prefix,
            root: root.to_owned(),
            keep_all_messages: asked("keep_all_messages"),
            settings,
        })
    }

    /// A service: opened, or created by the first to come. Also returns how many requests of a client may be
    /// in flight.
    pub(crate) fn calls(&self, request: &Endpoint) -> Result<(Calls, usize)> {
        let quality = Quality::new(request, self.keep_all_messages)?;
        let under_way = under_way(request, &quality);
        let node = match self.calling.get() {
            Some(node) => node,
            None => self.calling.get_or_init({
                let node = new_node::<Locked>(&self.settings, &self.name)?;
                || node
            }),
        };
        let calls = node
            .service_builder(&service_name(&request.topic)?)
            .request_response::<[u8], [u8]>()
            .max_active_requests_per_client(under_way)
            .max_clients(self.room.subscribers)
            .max_nodes(self.room.nodes)
            .open_or_create()
            .doing(format!("service '{}': opening or creating it", request.topic))?;
        Ok((calls, under_way))
    }

    /// The messages of a topic: opened, or created by the first to come.
    pub(crate) fn messages(&self, topic: &str, quality: &Quality) -> Result<Messages> {
        let name = service_name(topic)?;
        self.node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(quality.overflows)
            .subscriber_max_buffer_size(quality.buffer)
            .subscriber_max_borrowed_samples(quality.borrowed)
            .max_publishers(self.room.publishers)
            .max_subscribers(self.room.subscribers)
            .max_nodes(self.room.nodes)
            .open_or_create()
            .doing(format!("topic '{topic}': opening or creating the service"))
    }

    /// The events that belong to a topic's messages.
    pub(crate) fn events(&self, topic: &str) -> Result<Events> {
        let name = service_name(&format!("{topic}/sent"))?;
        self.node
            .service_builder(&name)
            .event()
            .max_notifiers(EVENT_PORTS_DEFAULT.max(self.room.publishers))
            .max_listeners(EVENT_PORTS_DEFAULT.max(self.room.subscribers))
            .max_nodes(EVENT_NODES_DEFAULT.max(self.room.nodes))
            .open_or_create()
            .doing(format!("topic '{topic}': opening or creating the event"))
    }

    /// What a KEEP_ALL queue must hold, if the study says so.
    pub(crate) fn keep_all_messages(&self) -> Option<usize> {
        self.keep_all_messages
    }
}

impl Context for Iceoryx2Context {
    fn describe(&self) -> Description {
        let paste = format!(
            "[global]\nroot-path = '{}'\nprefix = '{}'\n\n[defaults.publish-subscribe]\nmax-publishers = {}\n\
             max-subscribers = {}\nmax-nodes = {}\n",
            self.root, self.prefix, self.room.publishers, self.room.subscribers, self.room.nodes
        );
        Description::default()
            .setting("global.root-path", self.root.as_str(), "/tmp/iceoryx2/")
            .setting("global.prefix", self.prefix.as_str(), "iox2_")
            .setting("publish-subscribe.max-publishers", self.room.publishers, PUBLISHERS_DEFAULT)
            .setting("publish-subscribe.max-subscribers", self.room.subscribers, SUBSCRIBERS_DEFAULT)
            .setting("publish-subscribe.max-nodes", self.room.nodes, NODES_DEFAULT)
            .setting("node.signal-handling-mode", "disabled", "handle-termination-requests")
            .paste("iceoryx2.toml", &paste)
            .transport(&["shared-memory"], &["shared-memory"])
    }
}

fn new_node<S: iceoryx2::service::Service>(settings: &Config, name: &str) -> Result<Node<S>> {
    let mut builder = NodeBuilder::new().config(settings).signal_handling_mode(SignalHandlingMode::Disabled);
    if let Ok(name) = NodeName::new(name) {
        builder = builder.name(&name);
    }
    builder.create::<S>().doing("creating the node")
}

/// The event that says that a message was sent.
pub(crate) fn sent_event() -> EventId {
    EventId::new(0)
}

fn service_name(text: &str) -> Result<ServiceName> {
    ServiceName::new(text).doing(format!("'{text}' as the name of a service"))
}

/// Sends the middleware's log to the adapter's, from warnings on.
fn route_log() {
    struct ToHost;
    impl iceoryx2_log::Log for ToHost {
        fn log(&self, level: LogLevel, origin: std::fmt::Arguments<'_>, message: std::fmt::Arguments<'_>) {
            let level = if level == LogLevel::Warn { Level::Warning } else { Level::Error };
            host_log(level, &format!("iceoryx2: {message} [{origin}]"));
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_logger(&ToHost);
        set_log_level(LogLevel::Warn);
    });
}
