// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for ros2-client: ROS 2 nodes in Rust over RustDDS, without a ROS 2 installation.
mod context;
#[cfg(test)]
mod on_the_wire;
mod quality;
mod reader;
mod services;
mod settings;
mod stamped;
mod writer;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, Result};
use lagometer_rustdds_common::MioWaitset;

use crate::context::Ros2Context;
use crate::reader::{Ros2Reader, Ros2Sample};
use crate::services::Ends;
use crate::writer::Ros2Writer;

/// ros2-client.
#[derive(Debug)]
struct Ros2Rust;

impl Adapter for Ros2Rust {
    const NAME: &'static str = "ros2_rust";
    const SIDECAR: &'static str = include_str!("../adapter.json");
    const VERSION: &'static str = env!("LAGOMETER_MIDDLEWARE_VERSION");
    type Context = Ros2Context;
    type Writer = Ros2Writer;
    type Reader = Ros2Reader;
    type Waitset = MioWaitset;

    fn context(config: ContextConfig) -> Result<Ros2Context> {
        Ros2Context::new(&config)
    }
    fn writer(context: &Ros2Context, endpoint: &Endpoint) -> Result<Ros2Writer> {
        Ros2Writer::new(context, endpoint)
    }
    fn reader(context: &Ros2Context, endpoint: &Endpoint) -> Result<Ros2Reader> {
        Ros2Reader::new(context, endpoint)
    }
    const SERVICES: bool = true;
    fn client(
        context: &Ros2Context,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(Ros2Writer, Ros2Reader)> {
        let ends = Ends::new(context.nodes(), request, reply, false)?;
        Ok((Ros2Writer::new(context, request)?.of(ends.clone()), Ros2Reader::new(context, reply)?.of(ends)))
    }
    fn server(
        context: &Ros2Context,
        request: &Endpoint,
        reply: &Endpoint,
    ) -> Result<(Ros2Writer, Ros2Reader)> {
        let ends = Ends::new(context.nodes(), request, reply, true)?;
        Ok((Ros2Writer::new(context, reply)?.of(ends.clone()), Ros2Reader::new(context, request)?.of(ends)))
    }
    fn answer(replies: &mut Ros2Writer, request: &mut Ros2Sample) -> Result<()> {
        replies.answer(request.request()?)
    }
    fn waitset(_context: &Ros2Context) -> Result<MioWaitset> {
        MioWaitset::new()
    }
}

export_adapter!(Ros2Rust);
