// SPDX-License-Identifier: Apache-2.0
//! A Zenoh router: `lagometer-zenoh-router CONFIGURATION.json5`.
//!
//! The crate's own router, with Zenoh's own configuration file and without plugins, like the vendor's `zenohd
//! -c`, which is not on any registry. It routes until a signal ends it.
use std::error::Error;

use zenoh::{Config, Wait};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    zenoh::init_log_from_env_or("error");
    let file = std::env::args().nth(1).ok_or("usage: lagometer-zenoh-router CONFIGURATION.json5")?;
    let session = zenoh::open(Config::from_file(file)?).wait()?;
    while !session.is_closed() {
        std::thread::park();
    }
    Err("the router's session was closed".into())
}
