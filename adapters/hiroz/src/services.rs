// SPDX-License-Identifier: Apache-2.0
//! Request and reply: ROS 2 services. A client's request is a Zenoh query, with its number and its sender in
//! the attachment; the server's reply ends it.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hiroz::entity::{EndpointKind, TypeInfo};
use hiroz::msg::{NativeCdrSerdes, ZDeserializer, ZService};
use hiroz::service::{ServiceReply, ZClient, ZServer};
use hiroz::{Builder, ServiceTypeInfo, TypeHash};
use lagometer_adapter::ros2::Places;
use lagometer_adapter::{callback, Doing, Endpoint, Error, Result, Signalled, Stamps};

use crate::context::{Opened, SharedSession, Wanted};
use crate::message::{Bytes, Held, Message};
use crate::reader::{Arrived, Receiving, Way};
use crate::writer::Sending;

/// `lagometer/srv/Bytes`, which is not a ROS 2 service: `uint8[] data` both ways.
#[derive(Debug)]
pub(crate) struct Service;

impl ZService for Service {
    type Request = Bytes;
    type Response = Bytes;
}

impl ServiceTypeInfo for Service {
    fn service_type_info() -> TypeInfo {
        TypeInfo::new("lagometer::srv::dds_::Bytes_", TypeHash::zero())
    }
}

/// What answers a request, once.
pub(crate) type Reply = ServiceReply<Service>;

/// A received message and, for a request, what answers it.
pub(crate) type Received = (Held, Option<Reply>);

#[derive(Clone)]
enum End {
    Client(Arc<ZClient<Service>>),
    Server(Arc<Mutex<ZServer<Service>>>),
}

impl End {
    fn take_one(&self) -> Result<Option<Received>> {
        match self {
            Self::Client(client) => {
                let sample = client.rmw_try_take_response_sample().doing("taking a reply")?;
                let Some(sample) = sample else { return Ok(None) };
                let payload = sample.payload().to_bytes();
                let message =
                    NativeCdrSerdes::<Bytes>::deserialize(&payload).doing("making a message of a reply")?;
                Ok(Some((message.into_held(), None)))
            }
            Self::Server(server) => {
                let request = locked(server).try_take_request().doing("taking a request")?;
                Ok(request.map(|request| {
                    let (message, reply) = request.into_parts();
                    (message.into_held(), Some(reply))
                }))
            }
        }
    }

    fn has_data(&self) -> bool {
        match self {
            Self::Client(client) => client.rmw_has_responses(),
            Self::Server(server) => !locked(server).queue().is_empty(),
        }
    }
}

/// A client or a server, created when the first of its two ends is enabled.
pub(crate) struct Ends {
    made: Mutex<Option<End>>,
    own: Weak<Self>,
    session: SharedSession,
    /// The receiving end: its depth is that of the vendor's queue.
    wanted: Wanted,
    way: Way,
    serves: bool,
}

impl Ends {
    /// `receives`: for a client the endpoint of its replies, for a server that of its requests.
    pub(crate) fn new(
        session: SharedSession,
        receives: &Endpoint,
        sends: &Endpoint,
        way: Way,
        serves: bool,
    ) -> Result<Arc<Self>> {
        if receives.payload.message.is_some() || sends.payload.message.is_some() {
            return Err(Error::unsupported("services support only the payload type bytes"));
        }
        if receives.qos.transient_local == Some(true) || sends.qos.transient_local == Some(true) {
            return Err(Error::unsupported(
                "a service keeps nothing for late joiners: durability is volatile",
            ));
        }
        let wanted = Wanted::new(receives);
        Ok(Arc::new_cyclic(|own| Self {
            made: Mutex::default(),
            own: own.clone(),
            session,
            wanted,
            way,
            serves,
        }))
    }

    /// The counterparts of this end in the graph.
    pub(crate) fn counterparts(&self) -> EndpointKind {
        if self.serves {
            EndpointKind::Client
        } else {
            EndpointKind::Service
        }
    }

    /// The sending end.
    pub(crate) fn sending(&self) -> Result<Box<dyn Sending>> {
        Ok(Box::new(SendingEnd { end: self.end()?, ends: self.own.clone(), answered: None }))
    }

    /// The receiving end.
    pub(crate) fn receiving(&self) -> Result<Box<dyn Receiving>> {
        let end = self.end()?;
        if let Way::Queued(queued) = &self.way {
            let end = end.clone();
            queued.asks(move || end.has_data());
        }
        self.arrived(); // what arrived before the end could be queried
        Ok(Box::new(ReceivingEnd(end)))
    }

    fn end(&self) -> Result<End> {
        let mut made = locked(&self.made);
        if let Some(end) = &*made {
            return Ok(end.clone());
        }
        let (name, profile) = (&self.wanted.topic, self.wanted.profile);
        let doing = format!("making an end of the service '{name}'");
        let end = Opened::of(&self.session)?.make(&self.wanted.node, |node| {
            if !self.serves {
                let client = node.create_client::<Service>(name).with_qos(profile).build().doing(doing)?;
                return Ok(End::Client(Arc::new(client)));
            }
            let own = self.own.clone();
            let server = node.create_service::<Service>(name).with_qos(profile);
            let server = server.build_with_notifier(move || note(&own)).doing(doing)?;
            Ok(End::Server(Arc::new(Mutex::new(server))))
        })?;
        Ok(made.insert(end).clone())
    }

    /// Something arrived. [Zenoh's thread]
    fn arrived(&self) {
        let inbox = match &self.way {
            Way::Called(inbox) => inbox,
            Way::Queued(queued) => return queued.ring(),
        };
        let Some(end) = locked(&self.made).clone() else { return };
        let signalled = Signalled::now();
        // Drops what can't be parsed as a message, as the vendor does before a subscription's callback.
        while let Ok(Some((held, reply))) = end.take_one() {
            inbox.push(Arrived { reply, signalled, ..Arrived::of(held) });
        }
    }
}

/// [Zenoh's thread]
fn note(ends: &Weak<Ends>) {
    if let Some(ends) = ends.upgrade() {
        callback("a service's notifier", || ends.arrived());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct SendingEnd {
    end: End,
    ends: Weak<Ends>,
    answered: Option<Reply>,
}

impl Sending for SendingEnd {
    fn send(&mut self, places: Places, _stamps: Option<&mut Stamps>) -> Result<()> {
        let message = Bytes::of(places)?;
        match &self.end {
            End::Client(client) => {
                let ends = self.ends.clone();
                client.rmw_send_request(&message, move || note(&ends)).doing("asking").map(|_| ())
            }
            End::Server(_) => {
                let reply = self.answered.take();
                let reply = reply.ok_or_else(|| Error::invalid("a reply without a request"))?;
                reply.reply_blocking(&message).doing("replying")
            }
        }
    }

    fn answer(&mut self, request: Reply) -> Result<()> {
        self.answered = Some(request);
        Ok(())
    }
}

struct ReceivingEnd(End);

impl Receiving for ReceivingEnd {
    fn take_one(&self, _stamps: Option<&mut Stamps>) -> Result<Option<Arrived>> {
        Ok(self.0.take_one()?.map(|(held, reply)| Arrived { reply, ..Arrived::of(held) }))
    }
}
