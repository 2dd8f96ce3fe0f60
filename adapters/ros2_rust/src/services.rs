// SPDX-License-Identifier: Apache-2.0
//! Request and reply: ROS 2 services, mapped to DDS as in `rmw_fastrtps` (`ServiceMapping::Enhanced`).
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lagometer_adapter::ros2::{node_name, Places, Ros2Payload};
use lagometer_adapter::{Doing, Endpoint, Error, Result, Sent, Stamps};
use lagometer_rustdds_common::message::Bytes;
use ros2_client::qos::QosProfile;
use ros2_client::service::RmwRequestId;
use ros2_client::{Client, Gid, Message, Name, Node, Server, ServiceMapping, ServiceTypeName, WriteError};
use rustdds::mio1::event::Source;
use rustdds::mio1::{Interest, Registry, Token};
use serde::{Deserialize, Serialize};

use crate::context::{Nodes, SharedNodes};
use crate::quality;
use crate::reader::{Receiving, Ros2Sample};
use crate::writer::Sending;

/// The content of requests and replies.
#[derive(Clone, Serialize, Deserialize)]
struct Payload(Bytes);
impl Message for Payload {}

enum End {
    /// Its requests' own number, from the first one on.
    Client(Client<Payload, Payload>, Option<Gid>),
    Server(Server<Payload, Payload>),
}

/// A client or a server, created when the first of its two ends is enabled.
pub(crate) struct Ends {
    made: Mutex<Option<Arc<Mutex<End>>>>,
    nodes: SharedNodes,
    node: String,
    name: String,
    serves: bool,
    request: QosProfile,
    reply: QosProfile,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ends {
    pub(crate) fn new(
        nodes: SharedNodes,
        request: &Endpoint,
        reply: &Endpoint,
        serves: bool,
    ) -> Result<Arc<Self>> {
        if request.payload.message.is_some() || reply.payload.message.is_some() {
            return Err(Error::unsupported("services support only the payload type bytes"));
        }
        Ok(Arc::new(Self {
            made: Mutex::default(),
            nodes,
            node: request.node.clone(),
            name: request.topic.clone(),
            serves,
            // A publisher's default is also that of ROS 2 services.
            request: quality::profile(QosProfile::publisher_default(), request)?,
            reply: quality::profile(QosProfile::publisher_default(), reply)?,
        }))
    }

    /// The sending end.
    pub(crate) fn sending(&self) -> Result<Box<dyn Sending>> {
        Ok(Box::new(SendingEnd { end: self.end()?, answered: Mutex::default() }))
    }

    /// The receiving end.
    pub(crate) fn receiving(&self) -> Result<Box<dyn Receiving>> {
        Ok(Box::new(ReceivingEnd(self.end()?)))
    }

    fn end(&self) -> Result<Arc<Mutex<End>>> {
        let mut made = locked(&self.made);
        if let Some(end) = &*made {
            return Ok(end.clone());
        }
        let end = Nodes::of(&self.nodes)?.within(&self.node, |node| self.make(node))?;
        Ok(made.insert(Arc::new(Mutex::new(end))).clone())
    }

    fn make(&self, node: &mut Node) -> Result<End> {
        let doing = format!("making an end of the service '{}'", self.name);
        let (namespace, base) = self.name.rsplit_once('/').unwrap_or(("", &self.name));
        let name = Name::new(&format!("/{namespace}"), &node_name(base))
            .map_err(|error| Error::invalid(format!("{doing}: {error:?}")))?;
        let kind = ServiceTypeName::new("lagometer", "Bytes");
        let (request, reply) = (self.request.clone(), self.reply.clone());
        if self.serves {
            let server = node.create_server(ServiceMapping::Enhanced, &name, &kind, request, reply);
            return Ok(End::Server(server.doing(doing)?));
        }
        let client = node.create_client(ServiceMapping::Enhanced, &name, &kind, request, reply);
        Ok(End::Client(client.doing(doing)?, None))
    }
}

struct SendingEnd {
    end: Arc<Mutex<End>>,
    answered: Mutex<Option<RmwRequestId>>,
}

fn sent<T>(result: std::result::Result<T, WriteError<()>>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(WriteError::WouldBlock { .. }) => Ok(None),
        Err(error) => Err(error).doing("sending"),
    }
}

impl Sending for SendingEnd {
    fn send(&self, places: Places, _stamps: Option<&mut Stamps>) -> Result<Sent> {
        let payload = Payload(Bytes::of(places)?);
        let done = match &mut *locked(&self.end) {
            End::Client(client, own) => {
                let id = sent(client.send_request(payload))?;
                *own = own.or(id.map(|id| id.writer_gid));
                id.is_some()
            }
            End::Server(server) => {
                let request = locked(&self.answered).take();
                let request = request.ok_or_else(|| Error::invalid("a reply without a request"))?;
                sent(server.send_response(request, payload))?.is_some()
            }
        };
        Ok(if done { Sent::Accepted } else { Sent::Rejected })
    }
    fn answer(&self, request: RmwRequestId) -> Result<()> {
        *locked(&self.answered) = Some(request);
        Ok(())
    }
}

struct ReceivingEnd(Arc<Mutex<End>>);

impl Receiving for ReceivingEnd {
    fn take_one(&self, _stamps: Option<&mut Stamps>) -> Result<Option<Ros2Sample>> {
        match &*locked(&self.0) {
            End::Server(server) => {
                let taken = server.receive_request().doing("taking a request")?;
                Ok(taken.map(|(id, payload)| Ros2Sample::of_service(payload.0.into_places(), Some(id))))
            }
            // Replies go to all clients: those for others are skipped, as in rmw.
            End::Client(client, own) => loop {
                match client.receive_response().doing("taking a reply")? {
                    None => return Ok(None),
                    Some((id, payload)) if Some(id.writer_gid) == *own => {
                        return Ok(Some(Ros2Sample::of_service(payload.0.into_places(), None)));
                    }
                    Some(_) => {}
                }
            },
        }
    }
}

impl ReceivingEnd {
    fn with<T>(&mut self, use_source: impl FnOnce(&mut dyn Source) -> T) -> T {
        match &mut *locked(&self.0) {
            End::Client(client, _) => use_source(client),
            End::Server(server) => use_source(server),
        }
    }
}

impl Source for ReceivingEnd {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> std::io::Result<()> {
        self.with(|source| source.register(registry, token, interests))
    }
    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> std::io::Result<()> {
        self.with(|source| source.reregister(registry, token, interests))
    }
    fn deregister(&mut self, registry: &Registry) -> std::io::Result<()> {
        self.with(|source| source.deregister(registry))
    }
}
