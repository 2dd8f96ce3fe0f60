// SPDX-License-Identifier: Apache-2.0
//! A context is one Zenoh session, opened by `enable`; each of lagometer's nodes in it is a ROS 2 node.
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hiroz::context::{ZContext, ZContextBuilder};
use hiroz::graph::Graph;
use hiroz::node::ZNode;
use hiroz::qos::QosProfile;
use hiroz::Builder;
use lagometer_adapter::ros2::{graph_name, node_name};
use lagometer_adapter::{
    Context, ContextConfig, Description, Doing, Endpoint, Error, Link, Matched, PayloadType, Result, Status,
};
use lagometer_zenoh_common::{free_tcp_endpoint, Changes, Membership};

use crate::settings::{changes, changes_with_router, Settings};

/// A session shared by its endpoints, once it is open.
pub(crate) type SharedSession = Arc<OnceLock<Opened>>;

/// One session.
pub(crate) struct HirozContext {
    session: SharedSession,
    settings: Settings,
    domain: u32,
    folder: PathBuf,
    link: Option<Link>,
}

/// An open session, and its nodes by lagometer's names.
pub(crate) struct Opened {
    nodes: Mutex<BTreeMap<String, ZNode>>,
    parameters: bool,
    context: ZContext,
    changes: Changes,
    _membership: Option<Membership>,
}

impl HirozContext {
    pub(crate) fn new(config: ContextConfig) -> Result<Self> {
        Ok(Self {
            session: Arc::default(),
            settings: Settings::new(&config.options),
            domain: config.domain,
            folder: config.own_folder("hiroz")?,
            link: config.link,
        })
    }

    pub(crate) fn session(&self) -> SharedSession {
        self.session.clone()
    }

    /// How the session's configuration differs, and its place among sessions that find each other without a
    /// router.
    fn changes(&self) -> Result<(Changes, Option<Membership>)> {
        let link = self.link.as_ref();
        let own = free_tcp_endpoint(link.map_or(Ipv4Addr::LOCALHOST, |link| link.address))?;
        if self.settings.router {
            return Ok((changes_with_router(&own), None));
        }
        if link.is_some() {
            return Ok((changes(&own, &[], link), None));
        }
        let (membership, before) = Membership::take(&self.folder, &own)?;
        Ok((changes(&own, &before, None), Some(membership)))
    }
}

impl Context for HirozContext {
    fn enable(&self) -> Result<()> {
        let (changes, membership) = self.changes()?;
        let vendors = hiroz::config::session_config().doing("making the vendor's configuration")?;
        let context = ZContextBuilder::default()
            .with_domain_id(self.domain as usize)
            .with_zenoh_config(changes.apply(vendors)?)
            .build()
            .doing("opening the session")?;
        let parameters = self.settings.parameters;
        let opened =
            Opened { nodes: Mutex::default(), parameters, context, changes, _membership: membership };
        self.session.set(opened).map_err(|_| Error::invalid("a context enabled twice"))
    }

    fn describe(&self) -> Description {
        self.settings.describe(self.session.get().map(|opened| &opened.changes))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Endpoints are gone by now. Nodes end first, then the session with its last link, then its place in
        // the folder.
        self.nodes.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        let _ = self.context.shutdown();
    }
}

impl Opened {
    /// The session of an endpoint that is being enabled.
    pub(crate) fn of(shared: &SharedSession) -> Result<&Self> {
        shared.get().ok_or_else(|| Error::invalid("an endpoint enabled before its context"))
    }

    /// Uses a node to create an endpoint.
    pub(crate) fn make<T>(&self, name: &str, make: impl FnOnce(&ZNode) -> Result<T>) -> Result<T> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if !nodes.contains_key(name) {
            nodes.insert(name.to_owned(), self.node(name)?);
        }
        let node = nodes.get(name).ok_or_else(|| Error::failed("a node that was just made is gone"))?;
        make(node)
    }

    fn node(&self, name: &str) -> Result<ZNode> {
        let builder = self.context.create_node(node_name(name));
        let builder = if self.parameters { builder } else { builder.without_parameters() };
        builder.build().doing(format!("making the node '{name}'"))
    }

    /// What the middleware knows about nodes, topics and endpoints.
    pub(crate) fn graph(&self) -> &Arc<Graph> {
        self.context.graph()
    }
}

/// The configuration for both kinds of endpoint.
pub(crate) struct Wanted {
    pub(crate) node: String,
    pub(crate) topic: String,
    pub(crate) payload: PayloadType,
    pub(crate) profile: QosProfile,
}

impl Wanted {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            node: endpoint.node.clone(),
            topic: format!("/{}", graph_name(&endpoint.topic)),
            payload: endpoint.payload,
            profile: crate::quality::profile(endpoint),
        }
    }
}

/// What any thread may query about an endpoint.
pub(crate) struct Facts {
    session: SharedSession,
    topic: String,
    counterparts: hiroz::entity::EndpointKind,
    profile: QosProfile,
}

impl Facts {
    pub(crate) fn new(
        session: SharedSession,
        wanted: &Wanted,
        counterparts: hiroz::entity::EndpointKind,
    ) -> Self {
        Self { session, topic: wanted.topic.clone(), counterparts, profile: wanted.profile }
    }
}

impl Status for Facts {
    fn matched(&self) -> Matched {
        let count =
            self.session.get().map_or(0, |opened| opened.graph().count(self.counterparts, &self.topic));
        Matched::Seen(u32::try_from(count).unwrap_or(u32::MAX))
    }
    fn describe(&self) -> Description {
        crate::quality::describe(&self.profile)
    }
}
