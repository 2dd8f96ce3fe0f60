// SPDX-License-Identifier: Apache-2.0
//! A context is one Zenoh session, opened by `enable`.
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lagometer_adapter::{Context, ContextConfig, Description, Doing, Endpoint, Error, Link, Result};
use lagometer_zenoh_common::{Changes, Membership};
use serde_json::Value;
use zenoh::{Config, Session, Wait};

use crate::settings::Settings;

/// A session shared by its endpoints, once it is open.
pub(crate) type SharedSession = Arc<OnceLock<Session>>;

/// One session.
pub(crate) struct ZenohContext {
    session: SharedSession,
    opened: OnceLock<Opened>,
    settings: Settings,
    domain: u32,
    folder: PathBuf,
    runtime_directory: PathBuf,
    link: Option<Link>,
}

/// What belongs to an open session.
struct Opened {
    changes: Changes,
    _membership: Option<Membership>,
}

impl ZenohContext {
    pub(crate) fn new(config: ContextConfig) -> Result<Self> {
        Ok(Self {
            session: Arc::default(),
            opened: OnceLock::new(),
            settings: Settings::new(config.profile, &config.options)?,
            domain: config.domain,
            folder: config.own_folder("zenoh")?,
            runtime_directory: config.runtime_directory,
            link: config.link,
        })
    }

    pub(crate) fn session(&self) -> SharedSession {
        self.session.clone()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A topic's key, prefixed with the domain as in rmw_zenoh: all domains meet at a router.
    pub(crate) fn key(&self, endpoint: &Endpoint) -> String {
        format!("{}/{}", self.domain, endpoint.topic)
    }

    /// How the session's configuration differs: a client of the router, or a peer among peers.
    fn changes(&self) -> Result<(Changes, Option<Membership>)> {
        if self.settings.router {
            let router = self.settings.router_endpoint(&self.runtime_directory);
            return Ok((self.settings.changes(None, &[router], None), None));
        }
        let link = self.link.as_ref();
        let own = self.settings.free_endpoint(&self.folder, link)?;
        if link.is_some() {
            return Ok((self.settings.changes(Some(&own), &[], link), None));
        }
        let (membership, before) = Membership::take(&self.folder, &own)?;
        Ok((self.settings.changes(Some(&own), &before, None), Some(membership)))
    }
}

impl Context for ZenohContext {
    fn enable(&self) -> Result<()> {
        let (changes, membership) = self.changes()?;
        let session = zenoh::open(changes.apply(Config::default())?).wait().doing("opening the session")?;
        self.session.set(session).map_err(|_| Error::invalid("a context enabled twice"))?;
        let _ = self.opened.set(Opened { changes, _membership: membership });
        Ok(())
    }

    fn describe(&self) -> Description {
        let between = self.settings.transport_word();
        let description = Description::default()
            .transport(&["process"], &[between])
            .setting("transport", between, "tcp")
            .setting("congestion_control", self.settings.congestion_control_word(), "drop")
            .setting("keep_all_messages", self.settings.keep_all_messages, Value::Null)
            .setting("socket_buffer_bytes", self.settings.socket_buffer_bytes, Value::Null)
            .setting("shm_pool_bytes", self.settings.shm_pool_bytes, Value::Null);
        match self.opened.get() {
            Some(opened) => opened.changes.describe(description, "zenoh.json5"),
            None => description,
        }
    }
}

impl Drop for ZenohContext {
    fn drop(&mut self) {
        // Endpoints are gone by now. The session ends with its last link, then its place in the folder is
        // returned.
        if let Some(session) = self.session.get() {
            let _ = session.close().wait();
        }
    }
}

/// The session of an endpoint that is being enabled.
pub(crate) fn open_session(session: &SharedSession) -> Result<&Session> {
    session.get().ok_or_else(|| Error::invalid("an endpoint enabled before its context"))
}
