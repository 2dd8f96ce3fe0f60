// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for RustDDS: DDS in Rust, over UDP, which interoperates with Cyclone DDS and Fast DDS.
mod context;
mod quality;
mod reader;
mod settings;
mod wire;
mod writer;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, Result};
use lagometer_rustdds_common::MioWaitset;

use crate::context::RustDdsContext;
use crate::reader::RustDdsReader;
use crate::writer::RustDdsWriter;

/// RustDDS.
#[derive(Debug)]
struct RustDds;

impl Adapter for RustDds {
    const NAME: &'static str = "rustdds";
    const SIDECAR: &'static str = include_str!("../adapter.json");
    const VERSION: &'static str = env!("LAGOMETER_MIDDLEWARE_VERSION");
    type Context = RustDdsContext;
    type Writer = RustDdsWriter;
    type Reader = RustDdsReader;
    type Waitset = MioWaitset;

    fn context(config: ContextConfig) -> Result<RustDdsContext> {
        RustDdsContext::new(&config)
    }
    fn writer(context: &RustDdsContext, endpoint: &Endpoint) -> Result<RustDdsWriter> {
        RustDdsWriter::new(context, endpoint)
    }
    fn reader(context: &RustDdsContext, endpoint: &Endpoint) -> Result<RustDdsReader> {
        RustDdsReader::new(context, endpoint)
    }
    fn waitset(_context: &RustDdsContext) -> Result<MioWaitset> {
        MioWaitset::new()
    }
}

export_adapter!(RustDds);
