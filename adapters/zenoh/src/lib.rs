// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for Eclipse Zenoh: peer to peer or through a router, over TCP, Unix-domain sockets or shared
//! memory.
mod context;
mod reader;
mod settings;
mod writer;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, InboxWaitset, Result};

use crate::context::ZenohContext;
use crate::reader::{ZenohReader, ZenohSample};
use crate::writer::ZenohWriter;

/// Eclipse Zenoh.
#[derive(Debug)]
struct Zenoh;

impl Adapter for Zenoh {
    const NAME: &'static str = "zenoh";
    const SIDECAR: &'static str = include_str!("../adapter.json");
    const VERSION: &'static str = env!("LAGOMETER_MIDDLEWARE_VERSION");
    type Context = ZenohContext;
    type Writer = ZenohWriter;
    type Reader = ZenohReader;
    type Waitset = InboxWaitset;

    fn context(config: ContextConfig) -> Result<ZenohContext> {
        ZenohContext::new(config)
    }
    fn writer(context: &ZenohContext, endpoint: &Endpoint) -> Result<ZenohWriter> {
        ZenohWriter::new(context, endpoint)
    }
    fn reader(context: &ZenohContext, endpoint: &Endpoint) -> Result<ZenohReader> {
        ZenohReader::new(context, endpoint)
    }
    const SERVICES: bool = true;
    fn client(
        context: &ZenohContext,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(ZenohWriter, ZenohReader)> {
        let reader = ZenohReader::of_replies(context, reply)?;
        Ok((ZenohWriter::of_requests(context, request, &reader)?, reader))
    }
    fn server(
        context: &ZenohContext,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(ZenohWriter, ZenohReader)> {
        Ok((ZenohWriter::of_replies(context, reply)?, ZenohReader::of_requests(context, request)?))
    }
    fn answer(replies: &mut ZenohWriter, request: &mut ZenohSample) -> Result<()> {
        replies.answer(request.query()?)
    }
    fn waitset(_context: &ZenohContext) -> Result<InboxWaitset> {
        Ok(InboxWaitset::new())
    }
}

export_adapter!(Zenoh);
