// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for Eclipse iceoryx2: publish-subscribe over shared memory, with its events to wait for messages.
mod context;
mod ports;
mod quality;
mod services;
mod waitset;

use std::sync::Arc;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, Result};

use crate::context::Iceoryx2Context;
use crate::ports::{Iceoryx2Reader, Iceoryx2Sample, Iceoryx2Writer};
use crate::services::{Client, Server};
use crate::waitset::Iceoryx2Waitset;

/// Eclipse iceoryx2.
#[derive(Debug)]
struct Iceoryx2;

impl Adapter for Iceoryx2 {
    const NAME: &'static str = "iceoryx2";
    const SIDECAR: &'static str = include_str!("../adapter.json");
    const VERSION: &'static str = env!("LAGOMETER_MIDDLEWARE_VERSION");
    type Context = Iceoryx2Context;
    type Writer = Iceoryx2Writer;
    type Reader = Iceoryx2Reader;
    type Waitset = Iceoryx2Waitset;

    fn context(config: ContextConfig) -> Result<Iceoryx2Context> {
        Iceoryx2Context::new(&config)
    }
    fn writer(context: &Iceoryx2Context, endpoint: &Endpoint) -> Result<Iceoryx2Writer> {
        Iceoryx2Writer::new(context, endpoint)
    }
    fn reader(context: &Iceoryx2Context, endpoint: &Endpoint) -> Result<Iceoryx2Reader> {
        Iceoryx2Reader::new(context, endpoint)
    }
    const SERVICES: bool = true;
    fn client(
        context: &Iceoryx2Context,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(Iceoryx2Writer, Iceoryx2Reader)> {
        let client = Arc::new(Client::new(context, request)?);
        Ok((
            Iceoryx2Writer::of_requests(context, request, client.clone())?,
            Iceoryx2Reader::of_replies(context, reply, client)?,
        ))
    }
    fn server(
        context: &Iceoryx2Context,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(Iceoryx2Writer, Iceoryx2Reader)> {
        let server = Arc::new(Server::new(context, request, reply)?);
        Ok((
            Iceoryx2Writer::of_replies(context, reply, server.clone())?,
            Iceoryx2Reader::of_requests(context, request, server)?,
        ))
    }
    fn answer(replies: &mut Iceoryx2Writer, request: &mut Iceoryx2Sample) -> Result<()> {
        replies.answer(request.asked()?)
    }
    fn waitset(_context: &Iceoryx2Context) -> Result<Iceoryx2Waitset> {
        Iceoryx2Waitset::new()
    }
}

export_adapter!(Iceoryx2);
