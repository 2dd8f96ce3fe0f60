// SPDX-License-Identifier: Apache-2.0
//! Quality of service in Dust DDS's terms, and the effective values.
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos};
use dust_dds::infrastructure::qos_policy::{
    DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind,
    ReliabilityQosPolicy, ReliabilityQosPolicyKind,
};
use dust_dds::infrastructure::time::DurationKind;
use lagometer_adapter::{Description, Endpoint, Error, History, Result};

/// What can be requested of both kinds of endpoint; the rest is the vendor's.
#[derive(Debug, Clone)]
struct Policies {
    reliability: ReliabilityQosPolicy,
    durability: DurabilityQosPolicy,
    history: HistoryQosPolicy,
}

impl From<&DataWriterQos> for Policies {
    fn from(qos: &DataWriterQos) -> Self {
        Self {
            reliability: qos.reliability.clone(),
            durability: qos.durability.clone(),
            history: qos.history.clone(),
        }
    }
}

impl From<&DataReaderQos> for Policies {
    fn from(qos: &DataReaderQos) -> Self {
        Self {
            reliability: qos.reliability.clone(),
            durability: qos.durability.clone(),
            history: qos.history.clone(),
        }
    }
}

impl Policies {
    fn asked(mut self, endpoint: &Endpoint) -> Result<Self> {
        let qos = &endpoint.qos;
        if let Some(reliable) = qos.reliable {
            let (best_effort, max_blocking_time) =
                (ReliabilityQosPolicyKind::BestEffort, DurationKind::Finite(qos.blocking_max.into()));
            let kind = if reliable { ReliabilityQosPolicyKind::Reliable } else { best_effort };
            self.reliability = ReliabilityQosPolicy { kind, max_blocking_time };
        }
        if let Some(transient_local) = qos.transient_local {
            let volatile = DurabilityQosPolicyKind::Volatile;
            self.durability.kind =
                if transient_local { DurabilityQosPolicyKind::TransientLocal } else { volatile };
        }
        match qos.history {
            Some(History::KeepLast(depth)) => {
                let depth = u32::try_from(depth).unwrap_or(u32::MAX);
                self.history.kind = HistoryQosPolicyKind::KeepLast(depth);
            }
            Some(History::KeepAll) => {
                let why = "a keep_all writer never frees messages that all readers have received";
                return Err(Error::unsupported(format!("topic '{}': no keep_all: {why}", endpoint.topic)));
            }
            None => (),
        }
        Ok(self)
    }

    /// The policies that differ from the vendor's.
    fn describe(&self, vendors: &Self) -> Description {
        let blocking = |policies: &Self| format!("{:?}", policies.reliability.max_blocking_time);
        Description::default()
            .setting("reliability", self.reliability_name(), vendors.reliability_name())
            .setting("max_blocking_time", blocking(self), blocking(vendors))
            .setting("history", self.history_name(), vendors.history_name())
            .setting("durability", self.durability_name(), vendors.durability_name())
    }

    fn reliability_name(&self) -> &'static str {
        match self.reliability.kind {
            ReliabilityQosPolicyKind::Reliable => "reliable",
            ReliabilityQosPolicyKind::BestEffort => "best_effort",
        }
    }

    fn durability_name(&self) -> String {
        match self.durability.kind {
            DurabilityQosPolicyKind::Volatile => "volatile".to_owned(),
            DurabilityQosPolicyKind::TransientLocal => "transient_local".to_owned(),
            other => format!("{other:?}"),
        }
    }

    fn history_name(&self) -> String {
        match self.history.kind {
            HistoryQosPolicyKind::KeepLast(depth) => format!("keep_last {depth}"),
            HistoryQosPolicyKind::KeepAll => "keep_all".to_owned(),
        }
    }
}

/// What the study requests of a writer; the rest is the vendor's.
pub(crate) fn of_writer(endpoint: &Endpoint) -> Result<DataWriterQos> {
    let vendors = DataWriterQos::default();
    let Policies { reliability, durability, history } = Policies::from(&vendors).asked(endpoint)?;
    Ok(DataWriterQos { reliability, durability, history, ..vendors })
}

/// What the study requests of a reader; the rest is the vendor's.
pub(crate) fn of_reader(endpoint: &Endpoint) -> Result<DataReaderQos> {
    let vendors = DataReaderQos::default();
    let Policies { reliability, durability, history } = Policies::from(&vendors).asked(endpoint)?;
    Ok(DataReaderQos { reliability, durability, history, ..vendors })
}

/// The policies of a writer that differ from the vendor's.
pub(crate) fn describe_writer(qos: &DataWriterQos) -> Description {
    Policies::from(qos).describe(&Policies::from(&DataWriterQos::default()))
}

/// The policies of a reader that differ from the vendor's.
pub(crate) fn describe_reader(qos: &DataReaderQos) -> Description {
    Policies::from(qos).describe(&Policies::from(&DataReaderQos::default()))
}
