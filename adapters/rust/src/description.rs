// SPDX-License-Identifier: Apache-2.0
//! What `describe` reports for an object: settings that differ from the vendor's default, and the claimed
//! transport.
use serde_json::{json, Map, Value};

/// Effective settings, to be stored with a cell.
#[derive(Debug, Clone, Default)]
pub struct Description {
    settings: Map<String, Value>,
    paste: Vec<Value>,
    more: Map<String, Value>,
}

impl Description {
    /// An effective setting and the vendor's default; leave out settings that equal the default.
    pub fn setting(mut self, name: &str, value: impl Into<Value>, default: impl Into<Value>) -> Self {
        let (value, default) = (value.into(), default.into());
        if value != default {
            self.settings.insert(name.to_owned(), json!({"value": value, "default": default}));
        }
        self
    }
    /// The same as text for one of the middleware's files.
    pub fn paste(mut self, file: &str, text: &str) -> Self {
        self.paste.push(json!({"file": file, "text": text}));
        self
    }
    /// What carries messages, in order of preference, in the terms of docs/ADAPTERS.md.
    pub fn transport(mut self, within_process: &[&str], between_processes: &[&str]) -> Self {
        let claim = json!({"within_process": within_process, "between_processes": between_processes});
        self.more.insert("transport".to_owned(), claim);
        self
    }
    /// A fact that is not a setting.
    pub fn observed(mut self, name: &str, value: impl Into<Value>) -> Self {
        let observed = self.more.entry("observed").or_insert_with(|| json!({}));
        observed[name] = value.into();
        self
    }

    pub(crate) fn to_json(&self) -> String {
        let mut whole = self.more.clone();
        whole.insert("settings".to_owned(), Value::Object(self.settings.clone()));
        whole.insert("paste".to_owned(), Value::Array(self.paste.clone()));
        Value::Object(whole).to_string()
    }
}

/// The kernel's limit for a socket buffer, if known: `rmem_max` or `wmem_max`, in bytes.
pub fn kernel_socket_limit(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}
