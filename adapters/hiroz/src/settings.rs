// SPDX-License-Identifier: Apache-2.0
//! What a study may set, and the configuration of a session that comes of it.
use lagometer_adapter::{Description, Link, Options};
use lagometer_zenoh_common::{connect_again_soon, scouting, Change, Changes};
use serde_json::json;

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Whether nodes have the services of parameters, as nodes of ROS 2 do.
    pub(crate) parameters: bool,
    /// Whether sessions find each other through the router of ROS 2's layer over Zenoh.
    pub(crate) router: bool,
}

/// Where the trial's router listens: adapter.json, which starts it, says the same.
const ROUTER: &str = "tcp/127.0.0.1:17448";

impl Settings {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            parameters: options.boolean("parameters"),
            router: options.text("router") == Some("rmw_zenohd"),
        }
    }

    /// What an open session says of itself; without `changes`, of one that is not open yet.
    pub(crate) fn describe(&self, changes: Option<&Changes>) -> Description {
        let description = Description::default().transport(&["process"], &["tcp"]).setting(
            "parameters",
            self.parameters,
            true,
        );
        match changes {
            Some(changes) => changes.describe(description, "session.json5"),
            None => description,
        }
    }
}

/// What differs from hiroz's configuration of a session that listens at `listen` and finds others through a router.
pub(crate) fn changes_with_router(listen: &str) -> Changes {
    vec![connect_to(&[ROUTER.to_owned()]), wait_for_links(), listen_at(listen)].into()
}

/// What differs without a router that tells sessions of each other. `connect`: where those before this one listen.
/// `link`: by which they find each other then.
pub(crate) fn changes(listen: &str, connect: &[String], link: Option<&Link>) -> Changes {
    let mut changes = scouting(link);
    changes.extend([connect_to(connect), connect_again_soon(), wait_for_links(), listen_at(listen)]);
    changes.into()
}

fn connect_to(endpoints: &[String]) -> Change {
    Change::new("connect/endpoints", endpoints, json!(["tcp/localhost:7447"]))
}

/// How long opening waits at most until the links are there and have told what is on their other side, which a late
/// subscription asks for what was sent before.
fn wait_for_links() -> Change {
    Change::new("scouting/delay", 2000, 500)
}

fn listen_at(endpoint: &str) -> Change {
    Change::new("listen/endpoints", json!([endpoint]), json!(["tcp/localhost:0"]))
}
