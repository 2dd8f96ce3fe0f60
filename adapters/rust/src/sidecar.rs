// SPDX-License-Identifier: Apache-2.0
//! The sidecar `adapter.json`, compiled in: `probe` reports what it declares, and options are checked against
//! it.
use serde_json::{json, Map, Value};

use crate::{Error, Result};

/// An adapter's sidecar.
#[derive(Debug)]
pub struct Sidecar {
    whole: Value,
}

impl Sidecar {
    /// Reads the text of `adapter.json`. Panics if it is not JSON: the build is broken.
    pub fn new(text: &str) -> Self {
        Self { whole: serde_json::from_str(text).expect("adapter.json is JSON") }
    }

    /// The result of `probe`.
    pub(crate) fn probe(&self, version: &str) -> Value {
        json!({"version": version, "abilities": self.whole["abilities"], "limits": self.whole["limits"]})
    }

    /// Rejects payload types that it does not list.
    pub(crate) fn check_type(&self, name: &str) -> Result<()> {
        let listed = self.whole["abilities"]["types"].as_array().cloned().unwrap_or_default();
        if listed.iter().any(|listed| listed == name) {
            return Ok(());
        }
        let valid: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
        Err(Error::unsupported(format!("no type '{name}'; valid: {}", valid.join(", "))))
    }

    /// Rejects payloads above its declared limit.
    pub(crate) fn check_limit(&self, bytes: usize) -> Result<()> {
        let limits = &self.whole["limits"];
        match limits["payload_bytes_max"].as_u64() {
            Some(most) if bytes as u64 > most => {
                let reason = limits["payload_bytes_max_reason"].as_str().unwrap_or("no larger ones exist");
                Err(Error::unsupported(format!("a payload of {bytes} B, and the most is {most} B: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// The given options, with defaults filled in. Rejects options that the sidecar does not list, and values
    /// that it does not allow.
    pub fn options(&self, text: &str) -> Result<Options> {
        let name = self.whole["name"].as_str().unwrap_or_default();
        let declared = self.whole["options"].as_object().cloned().unwrap_or_default();
        let given: Value = if text.is_empty() { json!({}) } else { parsed(name, text)? };
        let given =
            given.as_object().ok_or_else(|| Error::invalid(format!("{name}: options are no JSON object")))?;
        for (key, value) in given {
            let Some(option) = declared.get(key) else {
                let valid: Vec<&str> = declared.keys().map(String::as_str).collect();
                let valid = if valid.is_empty() { "none".to_owned() } else { valid.join(", ") };
                return Err(Error::invalid(format!("{name} has no option '{key}'; valid: {valid}")));
            };
            if !allows(option, value) {
                let why = format!("{name}: option '{key}' can't be {value}; its declaration: {option}");
                return Err(Error::invalid(why));
            }
        }
        let values = declared
            .iter()
            .map(|(key, option)| (key.clone(), given.get(key).unwrap_or(&option["default"]).clone()))
            .collect();
        Ok(Options { values, declared })
    }
}

fn parsed(name: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Error::invalid(format!("{name}: options: {error}")))
}

fn allows(option: &Value, value: &Value) -> bool {
    if value.is_null() {
        return option["default"].is_null();
    }
    let typed = match option["type"].as_str() {
        Some("integer") => value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => value.is_string(),
    };
    let listed = option["choices"].as_array().is_none_or(|choices| choices.contains(value));
    let number = value.as_f64();
    let bounded = |bound: &Value, within: fn(f64, f64) -> bool| match (bound.as_f64(), number) {
        (Some(bound), Some(number)) => within(number, bound),
        _ => true,
    };
    typed
        && listed
        && bounded(&option["minimum"], |n, b| n >= b)
        && bounded(&option["maximum"], |n, b| n <= b)
}

/// Checked options, by name.
#[derive(Debug, Clone)]
pub struct Options {
    values: Map<String, Value>,
    declared: Map<String, Value>,
}

impl Options {
    /// A number; none if it was left out and has no default.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.values.get(name).and_then(Value::as_i64)
    }
    /// A text; none if it was left out and has no default.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str)
    }
    /// A flag; off if it was left out and has no default.
    pub fn boolean(&self, name: &str) -> bool {
        self.values.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
    /// Every option with its value and its default.
    pub fn each(&self) -> impl Iterator<Item = (&str, &Value, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value, &self.declared[name]["default"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        Sidecar::new(
            r#"{"name": "some", "options": {
                "size": {"type": "integer", "default": 4, "minimum": 1, "maximum": 9},
                "way": {"type": "string", "default": "up", "choices": ["up", "down"]},
                "room": {"type": "integer", "default": null}}}"#,
        )
    }

    #[test]
    fn defaults_stand_where_nothing_is_given() {
        let options = sidecar().options("{}").unwrap();
        assert_eq!(
            (options.integer("size"), options.text("way"), options.integer("room")),
            (Some(4), Some("up"), None)
        );
    }

    #[test]
    fn payload_types_that_are_not_listed_are_refused() {
        let listing = Sidecar::new(r#"{"abilities": {"types": ["bytes", "Imu"]}}"#);
        assert!(listing.check_type("bytes").is_ok() && listing.check_type("Imu").is_ok());
        assert!(listing.check_type("fixed").unwrap_err().message.ends_with("valid: bytes, Imu"));
        assert!(sidecar().check_type("bytes").is_err());
    }

    #[test]
    fn payloads_above_the_limit_are_refused() {
        let limited =
            Sidecar::new(r#"{"limits": {"payload_bytes_max": 64, "payload_bytes_max_reason": "why"}}"#);
        assert!(limited.check_limit(64).is_ok());
        assert!(limited.check_limit(65).unwrap_err().message.ends_with(": why"));
        assert!(sidecar().check_limit(usize::MAX).is_ok());
    }

    #[test]
    fn what_is_not_declared_is_refused() {
        for wrong in [
            r#"{"sise": 1}"#,
            r#"{"size": 0}"#,
            r#"{"size": 10}"#,
            r#"{"size": true}"#,
            r#"{"way": "left"}"#,
            "[]",
            "{",
        ] {
            assert!(sidecar().options(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            sidecar().options(r#"{"size": 9, "way": "down", "room": 1}"#).unwrap().integer("room"),
            Some(1)
        );
    }
}
