// SPDX-License-Identifier: Apache-2.0
//! What a study can configure, and the resulting configuration of a session.
use lagometer_adapter::{Description, Link, Options};
use lagometer_zenoh_common::{connect_again_soon, scouting, Change, Changes};
use serde_json::json;

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Whether nodes have parameter services, as ROS 2 nodes do.
    pub(crate) parameters: bool,
    /// Whether sessions find each other through the router of ROS 2's Zenoh layer.
    pub(crate) router: bool,
}

/// Where the trial's router listens; adapter.json, which starts it, has the same address.
const ROUTER: &str = "tcp/127.0.0.1:17448";

impl Settings {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            parameters: options.boolean("parameters"),
            router: options.text("router") == Some("rmw_zenohd"),
        }
    }

    /// What an open session reports about itself; without `changes`, a session that is not open yet.
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

/// Changes to hiroz's configuration for a session that listens at `listen` and finds others through a router.
pub(crate) fn changes_with_router(listen: &str) -> Changes {
    vec![connect_to(&[ROUTER.to_owned()]), wait_for_links(), listen_at(listen)].into()
}

/// Changes for sessions that find each other without a router. `connect`: where those before this one listen.
/// `link`: the link on which they then find each other.
pub(crate) fn changes(listen: &str, connect: &[String], link: Option<&Link>) -> Changes {
    let mut changes = scouting(link);
    changes.extend([connect_to(connect), connect_again_soon(), wait_for_links(), listen_at(listen)]);
    changes.into()
}

fn connect_to(endpoints: &[String]) -> Change {
    Change::new("connect/endpoints", endpoints, json!(["tcp/localhost:7447"]))
}

/// The longest time that opening waits until the links exist and have announced what is on their other side,
/// which a late subscription asks for earlier messages.
fn wait_for_links() -> Change {
    Change::new("scouting/delay", 2000, 500)
}

fn listen_at(endpoint: &str) -> Change {
    Change::new("listen/endpoints", json!([endpoint]), json!(["tcp/localhost:0"]))
}
