// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for hiroz: ROS 2 nodes in Rust over Zenoh, without a ROS 2 installation.
mod context;
mod message;
mod quality;
mod queued;
mod reader;
mod services;
mod settings;
mod stamping;
mod writer;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, InboxWaitset, Result};

use crate::context::HirozContext;
use crate::reader::{HirozReader, HirozSample, Way};
use crate::services::Ends;
use crate::writer::HirozWriter;

/// hiroz.
#[derive(Debug)]
struct Hiroz;

impl Adapter for Hiroz {
    const NAME: &'static str = "hiroz";
    const SIDECAR: &'static str = include_str!("../adapter.json");
    const VERSION: &'static str = env!("LAGOMETER_MIDDLEWARE_VERSION");
    type Context = HirozContext;
    type Writer = HirozWriter;
    type Reader = HirozReader;
    type Waitset = InboxWaitset;

    fn context(config: ContextConfig) -> Result<HirozContext> {
        HirozContext::new(config)
    }
    fn writer(context: &HirozContext, endpoint: &Endpoint) -> Result<HirozWriter> {
        Ok(HirozWriter::new(context, endpoint))
    }
    fn reader(context: &HirozContext, endpoint: &Endpoint) -> Result<HirozReader> {
        Ok(HirozReader::new(context, endpoint))
    }
    const SERVICES: bool = true;
    fn client(
        context: &HirozContext,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(HirozWriter, HirozReader)> {
        let way = Way::new(reply);
        let ends = Ends::new(context.session(), reply, request, way.clone(), false)?;
        Ok((HirozWriter::of(context, request, ends.clone()), HirozReader::of(context, reply, way, ends)))
    }
    fn server(
        context: &HirozContext,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(HirozWriter, HirozReader)> {
        let way = Way::new(request);
        let ends = Ends::new(context.session(), request, reply, way.clone(), true)?;
        Ok((HirozWriter::of(context, reply, ends.clone()), HirozReader::of(context, request, way, ends)))
    }
    fn answer(replies: &mut HirozWriter, request: &mut HirozSample) -> Result<()> {
        replies.answer(request.reply()?)
    }
    fn waitset(_context: &HirozContext) -> Result<InboxWaitset> {
        Ok(InboxWaitset::new())
    }
}

export_adapter!(Hiroz);
