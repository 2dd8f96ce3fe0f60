// SPDX-License-Identifier: Apache-2.0
//! What a study can configure, and the resulting participant.
use lagometer_adapter::{ContextConfig, Description};
use lagometer_rustdds_common::Sockets;

/// The settings of a context.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Whether nodes publish their log.
    pub(crate) rosout: bool,
    pub(crate) sockets: Sockets,
}

impl Settings {
    pub(crate) fn new(config: &ContextConfig) -> Self {
        Self { rosout: config.options.boolean("rosout"), sockets: Sockets::new(config) }
    }

    pub(crate) fn describe(&self, domain: u16) -> Description {
        let text = format!(
            "Context::from_domain_participant(\n{}?,\n)\nNodeOptions::new().enable_rosout({})\n",
            self.sockets.paste(domain),
            self.rosout
        );
        self.sockets.describe().setting("enable_rosout", self.rosout, true).paste("context.rs", &text)
    }
}
