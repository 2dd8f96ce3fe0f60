// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for Dust DDS: DDS in Rust without unsafe code, over UDP.
mod blocking;
mod context;
mod form;
mod message;
mod quality;
mod reader;
mod settings;
mod waitset;
mod writer;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, Result};

use crate::blocking::watch_for_panics;
use crate::context::DustContext;
use crate::reader::DustReader;
use crate::waitset::DustWaitset;
use crate::writer::DustWriter;

/// Dust DDS.
#[derive(Debug)]
struct DustDds;

impl Adapter for DustDds {
    const NAME: &'static str = "dust_dds";
    const SIDECAR: &'static str = include_str!("../adapter.json");
    const VERSION: &'static str = env!("LAGOMETER_MIDDLEWARE_VERSION");
    type Context = DustContext;
    type Writer = DustWriter;
    type Reader = DustReader;
    type Waitset = DustWaitset;

    fn context(config: ContextConfig) -> Result<DustContext> {
        watch_for_panics();
        DustContext::new(&config)
    }
    fn writer(context: &DustContext, endpoint: &Endpoint) -> Result<DustWriter> {
        DustWriter::new(context, endpoint)
    }
    fn reader(context: &DustContext, endpoint: &Endpoint) -> Result<DustReader> {
        DustReader::new(context, endpoint)
    }
    fn waitset(_context: &DustContext) -> Result<DustWaitset> {
        Ok(DustWaitset::new())
    }
}

export_adapter!(DustDds);
