// SPDX-License-Identifier: Apache-2.0
//! What a study may set, and the configuration of a session that comes of it.
use std::net::TcpListener;

use lagometer_adapter::{Description, Doing, Options, Result};
use serde_json::{json, Map, Value};
use zenoh::Config;

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

/// One change of a session's configuration: key, value, vendor's default.
pub(crate) struct Change {
    key: &'static str,
    value: Value,
    default: Value,
}

impl Settings {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            parameters: options.boolean("parameters"),
            router: options.text("router") == Some("rmw_zenohd"),
        }
    }

    pub(crate) fn describe(&self, changes: &[Change]) -> Description {
        let mut description = Description::default().transport(&["process"], &["tcp"]).setting(
            "parameters",
            self.parameters,
            true,
        );
        let mut nested = Value::Object(Map::new());
        for change in changes {
            description = description.setting(change.key, change.value.clone(), change.default.clone());
            insert(&mut nested, change.key, change.value.clone());
        }
        let text = serde_json::to_string_pretty(&nested).unwrap_or_default();
        description.paste("session.json5", &text)
    }
}

/// What differs from hiroz's configuration of a session that listens at `listen` and finds others through a router.
pub(crate) fn changes_with_router(listen: &str) -> Vec<Change> {
    vec![connect_to(&[ROUTER.to_owned()]), wait_for_links(), listen_at(listen)]
}

/// What differs without a router that tells sessions of each other. `connect`: where those before this one listen.
pub(crate) fn changes(listen: &str, connect: &[String]) -> Vec<Change> {
    vec![
        Change { key: "scouting/gossip/enabled", value: json!(false), default: json!(true) },
        connect_to(connect),
        // A peer before this one may not listen yet: it is asked again at once, not after a second.
        Change {
            key: "connect/retry",
            value: json!({"period_init_ms": 5, "period_max_ms": 20, "period_increase_factor": 2}),
            default: json!({"period_init_ms": 1000, "period_max_ms": 4000, "period_increase_factor": 2}),
        },
        wait_for_links(),
        listen_at(listen),
    ]
}

fn connect_to(endpoints: &[String]) -> Change {
    Change { key: "connect/endpoints", value: json!(endpoints), default: json!(["tcp/localhost:7447"]) }
}

/// How long opening waits at most until the links are there and have told what is on their other side, which a late
/// subscription asks for what was sent before.
fn wait_for_links() -> Change {
    Change { key: "scouting/delay", value: json!(2000), default: json!(500) }
}

fn listen_at(endpoint: &str) -> Change {
    Change { key: "listen/endpoints", value: json!([endpoint]), default: json!(["tcp/localhost:0"]) }
}

/// The vendor's configuration with these changes.
pub(crate) fn configuration(changes: &[Change]) -> Result<Config> {
    let mut config = hiroz::config::session_config().doing("making the vendor's configuration")?;
    for change in changes {
        config
            .insert_json5(change.key, &change.value.to_string())
            .doing(format!("setting {}", change.key))?;
    }
    Ok(config)
}

/// A place to listen at that nobody used a moment ago.
pub(crate) fn free_endpoint() -> Result<String> {
    let doing = "looking for a free TCP port";
    let listener = TcpListener::bind(("127.0.0.1", 0)).doing(doing)?;
    Ok(format!("tcp/127.0.0.1:{}", listener.local_addr().doing(doing)?.port()))
}

/// Puts a value at `a/b/c`, making objects on the way.
fn insert(whole: &mut Value, path: &str, value: Value) {
    let mut place = whole;
    for key in path.split('/') {
        place = &mut place[key];
    }
    *place = value;
}
