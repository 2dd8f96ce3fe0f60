// SPDX-License-Identifier: Apache-2.0
//! How a session's configuration differs from the vendor's, and how a description reports it.
use lagometer_adapter::{Description, Doing, Link, Result};
use serde_json::{json, Map, Value};
use zenoh::Config;

/// One change: key (`a/b/c`), value, vendor's default.
#[derive(Debug, Clone)]
pub struct Change {
    key: &'static str,
    value: Value,
    default: Value,
}

impl Change {
    /// For a `key` in Zenoh's own configuration.
    pub fn new(key: &'static str, value: impl Into<Value>, default: impl Into<Value>) -> Self {
        Self { key, value: value.into(), default: default.into() }
    }
}

/// Retries a peer that does not listen yet at once, not after a second.
pub fn connect_again_soon() -> Change {
    Change::new(
        "connect/retry",
        json!({"period_init_ms": 5, "period_max_ms": 20, "period_increase_factor": 2}),
        json!({"period_init_ms": 1000, "period_max_ms": 4000, "period_increase_factor": 2}),
    )
}

/// Between hosts, peers find each other as by the vendor's default, by multicast, but only on the link and
/// separate from other trials. Without a link nobody scouts.
pub fn scouting(link: Option<&Link>) -> Vec<Change> {
    const GROUP: &str = "224.0.0.224";
    const PORT: u16 = 7446;
    const FIRST_PORT: u16 = 17_500;
    const PORTS: u16 = 1000;
    let Some(link) = link else {
        return vec![
            Change::new("scouting/multicast/enabled", false, true),
            Change::new("scouting/gossip/enabled", false, true),
        ];
    };
    let meeting_point = format!("{GROUP}:{}", FIRST_PORT + link.number(PORTS));
    vec![
        Change::new("scouting/multicast/enabled", true, true),
        Change::new("scouting/multicast/interface", link.address.to_string(), "auto"),
        Change::new("scouting/multicast/address", meeting_point, format!("{GROUP}:{PORT}")),
    ]
}

/// All changes of a session's configuration.
#[derive(Debug, Clone, Default)]
pub struct Changes(Vec<Change>);

impl From<Vec<Change>> for Changes {
    fn from(changes: Vec<Change>) -> Self {
        Self(changes)
    }
}

impl Changes {
    /// The vendor's configuration with these changes. Fails if it does not have such a key or does not accept
    /// such a value.
    pub fn apply(&self, mut config: Config) -> Result<Config> {
        for change in &self.0 {
            config
                .insert_json5(change.key, &change.value.to_string())
                .doing(format!("setting {}", change.key))?;
        }
        Ok(config)
    }

    /// Adds them to a description, and as a file `name` to paste with what differs from the vendor's default.
    pub fn describe(&self, mut description: Description, name: &str) -> Description {
        for change in &self.0 {
            description = description.setting(change.key, change.value.clone(), change.default.clone());
        }
        let text = serde_json::to_string_pretty(&self.nested()).unwrap_or_default();
        description.paste(name, &text)
    }

    /// What differs, as nested objects.
    fn nested(&self) -> Value {
        let mut whole = Value::Object(Map::new());
        for change in self.0.iter().filter(|change| change.value != change.default) {
            let mut place = &mut whole;
            for key in change.key.split('/') {
                place = &mut place[key];
            }
            *place = change.value.clone();
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn what_differs_is_nested_as_its_keys_say() {
        let changes = Changes::from(vec![
            Change::new("scouting/gossip/enabled", false, true),
            Change::new("scouting/delay", 2000, 500),
            Change::new("mode", "peer", "peer"),
        ]);
        assert_eq!(changes.nested(), json!({"scouting": {"gossip": {"enabled": false}, "delay": 2000}}));
    }

    #[test]
    fn the_vendor_takes_them_and_refuses_others() {
        let link = Link { address: Ipv4Addr::LOCALHOST, trial: "1".to_owned() };
        for changes in [vec![connect_again_soon()], scouting(None), scouting(Some(&link))] {
            assert!(Changes::from(changes).apply(Config::default()).is_ok());
        }
        let unknown = Changes::from(vec![Change::new("no/such/key", 1, 2)]);
        assert!(unknown.apply(Config::default()).is_err());
    }
}
