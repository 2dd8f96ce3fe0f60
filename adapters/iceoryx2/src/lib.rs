// SPDX-License-Identifier: Apache-2.0
//! lagometer's adapter for Eclipse iceoryx2: publish-subscribe over shared memory, with its events to wait for messages.
mod context;
mod ports;
mod quality;
mod waitset;

use lagometer_adapter::{export_adapter, Adapter, ContextConfig, Endpoint, Result};

use crate::context::Iceoryx2Context;
use crate::ports::{Iceoryx2Reader, Iceoryx2Writer};
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
    fn waitset(_context: &Iceoryx2Context) -> Result<Iceoryx2Waitset> {
        Iceoryx2Waitset::new()
    }
}

export_adapter!(Iceoryx2);
