// SPDX-License-Identifier: Apache-2.0
//! Request and reply: iceoryx2's request-response. The two ends of a client share one port, and so do those
//! of a server. Until the start two threads may use a client's port, so these ports are of the variant with a
//! lock.
//!
//! This file contains the `unsafe` that the middleware's interface requires.
#![allow(unsafe_code)]
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use iceoryx2::active_request::ActiveRequest;
use iceoryx2::pending_response::PendingResponse;
use iceoryx2::port::client::{Client as ClientPort, RequestSendError};
use iceoryx2::port::server::Server as ServerPort;
use iceoryx2::port::{LoanError, SendError};
use iceoryx2::prelude::*;
use iceoryx2::request_mut_uninit::RequestMutUninit;
use iceoryx2::response::Response;
use iceoryx2::response_mut_uninit::ResponseMutUninit;
use iceoryx2::service::port_factory::request_response;
use lagometer_adapter::{Counters, Description, Doing, Endpoint, History, Matched, Result, Sent, Status};

use crate::context::Iceoryx2Context;
use crate::quality::Quality;

/// Ports that several threads may use.
pub(crate) type Locked = ipc_threadsafe::Service;
/// The factory of a service's clients and servers.
pub(crate) type Calls = request_response::PortFactory<Locked, [u8], (), [u8], ()>;

/// A request that is being written.
pub(crate) type RequestLoan = RequestMutUninit<Locked, [MaybeUninit<u8>], (), [u8], ()>;
/// A reply that is being written.
pub(crate) type ReplyLoan = ResponseMutUninit<Locked, [MaybeUninit<u8>], ()>;
/// A taken reply.
pub(crate) type Reply = Response<Locked, [u8], ()>;
type Request = ActiveRequest<Locked, [u8], (), [u8], ()>;
type Serving = ServerPort<Locked, [u8], (), [u8], ()>;
type Pending = PendingResponse<Locked, [u8], (), [u8], ()>;

/// For a service, in the vendor's configuration: how many requests of a client may be in flight.
const UNDER_WAY_DEFAULT: usize = 4;

/// How many requests of a client may be in flight.
pub(crate) fn under_way(request: &Endpoint, quality: &Quality) -> usize {
    match request.qos.history {
        None => UNDER_WAY_DEFAULT,
        Some(History::KeepLast(depth)) => depth,
        Some(History::KeepAll) => quality.buffer,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What both ends of a client use.
pub(crate) struct Client {
    port: ClientPort<Locked, [u8], (), [u8], ()>,
    /// In the order of sending.
    pending: Mutex<VecDeque<Pending>>,
    pub(crate) status: Arc<CallStatus>,
}

impl Client {
    pub(crate) fn new(context: &Iceoryx2Context, request: &Endpoint) -> Result<Self> {
        let (calls, under_way) = context.calls(request)?;
        let port = calls.client_builder().initial_max_slice_len(request.payload.bytes_max).create();
        let port = port.doing(format!("service '{}': creating the client", request.topic))?;
        let pending = Mutex::new(VecDeque::with_capacity(under_way));
        Ok(Self { port, pending, status: CallStatus::new(calls, under_way, false) })
    }

    /// None: no memory is left, or too many are being written.
    pub(crate) fn borrow(&self, bytes: usize) -> Result<Option<RequestLoan>> {
        match self.port.loan_slice_uninit(bytes) {
            Ok(request) => Ok(Some(request)),
            Err(LoanError::OutOfMemory | LoanError::ExceedsMaxLoans) => {
                self.status.note_rejected();
                Ok(None)
            }
            Err(error) => Err(error).doing("borrowing a request"),
        }
    }

    pub(crate) fn send(&self, loan: RequestLoan) -> Result<Sent> {
        // SAFETY: a byte has no invalid value, and the memory is a mapped file that the kernel filled with zeros.
        let request = unsafe { loan.assume_init() };
        let mut pending = locked(&self.pending); // before the reply can arrive
        match request.send() {
            Ok(sent) => {
                if sent.number_of_server_connections() > 0 {
                    pending.push_back(sent);
                }
                Ok(Sent::Accepted)
            }
            Err(
                RequestSendError::ExceedsMaxActiveRequests
                | RequestSendError::SendError(SendError::UnableToDeliver),
            ) => {
                // Requests whose server is gone would hold their places forever.
                pending.retain(|each| each.is_connected() || each.has_response());
                self.status.note_rejected();
                Ok(Sent::Rejected)
            }
            Err(error) => Err(error).doing("sending a request"),
        }
    }

    /// The reply to the oldest request that has one. A request gets only one reply and is then done.
    pub(crate) fn take(&self) -> Result<Option<Reply>> {
        let mut pending = locked(&self.pending);
        while let Some(place) = pending.iter().position(Pending::has_response) {
            // An earlier one may have got its reply since it was checked, and before this one.
            let place = pending.iter().take(place).position(Pending::has_response).unwrap_or(place);
            if let Some(reply) = pending[place].receive().doing("receiving a reply")? {
                drop(pending.remove(place));
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }
}

/// What both ends of a server use.
pub(crate) struct Server {
    /// It receives as soon as it exists, so `enable` creates it.
    port: OnceLock<Serving>,
    service: String,
    reply_bytes_max: usize,
    pub(crate) status: Arc<CallStatus>,
}

impl Server {
    pub(crate) fn new(context: &Iceoryx2Context, request: &Endpoint, reply: &Endpoint) -> Result<Self> {
        let (calls, under_way) = context.calls(request)?;
        Ok(Self {
            port: OnceLock::new(),
            service: request.topic.clone(),
            reply_bytes_max: reply.payload.bytes_max,
            status: CallStatus::new(calls, under_way, true),
        })
    }

    pub(crate) fn enable(&self) -> Result<()> {
        let port = self.status.calls.server_builder().initial_max_slice_len(self.reply_bytes_max).create();
        let port = port.doing(format!("service '{}': creating the server", self.service))?;
        let _ = self.port.set(port);
        Ok(())
    }

    pub(crate) fn take(&self) -> Result<Option<Arc<Asked>>> {
        let Some(port) = self.port.get() else { return Ok(None) };
        let request = port.receive().doing("receiving a request")?;
        Ok(request.map(|request| Arc::new(Asked(request))))
    }

    /// None: no memory is left.
    pub(crate) fn borrow(&self, request: &Asked, bytes: usize) -> Result<Option<ReplyLoan>> {
        match request.0.loan_slice_uninit(bytes) {
            Ok(reply) => Ok(Some(reply)),
            Err(LoanError::OutOfMemory) => {
                self.status.note_rejected();
                Ok(None)
            }
            Err(error) => Err(error).doing("borrowing a reply"),
        }
    }

    pub(crate) fn send(&self, loan: ReplyLoan) -> Result<Sent> {
        // SAFETY: as in Client::send.
        let reply = unsafe { loan.assume_init() };
        match reply.send() {
            Ok(()) => Ok(Sent::Accepted),
            Err(SendError::UnableToDeliver) => {
                self.status.note_rejected();
                Ok(Sent::Rejected)
            }
            Err(error) => Err(error).doing("sending a reply"),
        }
    }
}

/// A request: its sample contains it and its reply is sent through it.
pub(crate) struct Asked(Request);

// SAFETY: one thread at a time uses both ends of a server, which share it (services.h).
unsafe impl Send for Asked {}
// SAFETY: as above.
unsafe impl Sync for Asked {}

impl Asked {
    pub(crate) fn payload(&self) -> &[u8] {
        self.0.payload()
    }
}

/// What any thread may query about an end of a service.
pub(crate) struct CallStatus {
    calls: Calls,
    under_way: usize,
    serves: bool,
    rejected: AtomicU64,
}

impl CallStatus {
    fn new(calls: Calls, under_way: usize, serves: bool) -> Arc<Self> {
        Arc::new(Self { calls, under_way, serves, rejected: AtomicU64::new(0) })
    }

    fn note_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }
}

impl Status for CallStatus {
    fn matched(&self) -> Matched {
        let ports = self.calls.dynamic_config();
        let count = if self.serves { ports.number_of_clients() } else { ports.number_of_servers() };
        Matched::Seen(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn counters(&self) -> Counters {
        Counters { rejected: Some(self.rejected.load(Ordering::Relaxed)), ..Counters::default() }
    }

    fn describe(&self) -> Description {
        Description::default().setting(
            "request-response.max-active-requests-per-client",
            self.under_way,
            UNDER_WAY_DEFAULT,
        )
    }
}
