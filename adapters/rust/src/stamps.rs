// SPDX-License-Identifier: Apache-2.0
//! When a message was in which layer of the middleware, and what identifies it there (`lagometer/stamps.h`).
use crate::abi;

/// A layer of the middleware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Layer {
    /// The payload is turned into what goes on the wire.
    Serialise = abi::LAYER_SERIALISE,
    /// The middleware's own call that sends.
    Write = abi::LAYER_WRITE,
    /// The middleware's own call that takes.
    Take = abi::LAYER_TAKE,
    /// What came over the wire is turned into the payload.
    Deserialise = abi::LAYER_DESERIALISE,
}

/// A set of layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layers(pub(crate) u64);

impl Layers {
    /// No layers.
    pub const NONE: Self = Self(0);

    /// The set of these layers.
    pub const fn of(layers: &[Layer]) -> Self {
        let (mut mask, mut index) = (0, 0);
        while index < layers.len() {
            mask |= 1 << layers[index] as u32;
            index += 1;
        }
        Self(mask)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u32) != 0
    }
}

/// The stamps of one message, and its key. Reused for the next: `begin`, then `within` for each layer.
pub struct Stamps {
    asked: Layers,
    pub(crate) list: abi::StampList,
    pub(crate) key: abi::StampKey,
}

impl Stamps {
    /// Stamps for the requested layers.
    pub fn new(asked: Layers) -> Self {
        let nothing = abi::Stamp { time_ns: 0, layer: 0, cpu: 0 };
        Self {
            asked,
            list: abi::StampList { count: 0, reserved: 0, at: [nothing; abi::STAMPS_MAX] },
            key: abi::StampKey { writer_id: 0, middleware_sequence: 0, source_time_ns: 0 },
        }
    }

    /// Forgets the previous message.
    pub fn begin(&mut self) {
        self.list.count = 0;
        self.key = abi::StampKey { writer_id: 0, middleware_sequence: 0, source_time_ns: 0 };
    }

    /// Runs code that belongs to a layer, and stamps when the layer was entered and left.
    #[inline]
    pub fn within<T>(&mut self, layer: Layer, function: impl FnOnce() -> T) -> T {
        if !self.asked.has(layer) {
            return function();
        }
        self.add(layer as u32);
        let result = function();
        self.add(layer as u32 | abi::LAYER_END);
        result
    }

    /// What identifies the message on both sides: the writer's number, the same in all processes, and its
    /// sequence.
    pub fn set_key(&mut self, writer_id: u64, sequence: u64) {
        self.key = abi::StampKey { writer_id, middleware_sequence: sequence, source_time_ns: 0 };
    }

    fn add(&mut self, layer: u32) {
        if let Some(place) = self.list.at.get_mut(self.list.count as usize) {
            *place = abi::Stamp { time_ns: crate::now_ns(), layer, cpu: crate::current_cpu() };
            self.list.count += 1;
        }
    }
}

/// A writer's number that is the same in all processes, from the bytes that identify it everywhere in the
/// middleware, such as a GUID (FNV-1a); never 0. Adapters in C++ compute it from the same bytes in the same
/// way.
pub fn writer_id(identity: &[u8]) -> u64 {
    let hash = identity.iter().fold(14_695_981_039_346_656_037, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
    });
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_that_nobody_asked_for_are_not_stamped() {
        let mut stamps = Stamps::new(Layers::of(&[Layer::Take]));
        assert_eq!(stamps.within(Layer::Write, || 1), 1);
        assert_eq!(stamps.list.count, 0);
        assert_eq!(stamps.within(Layer::Take, || 2), 2);
        let layers: Vec<u32> = stamps.list.at[..2].iter().map(|stamp| stamp.layer).collect();
        assert_eq!(layers, [abi::LAYER_TAKE, abi::LAYER_TAKE | abi::LAYER_END]);
        stamps.begin();
        assert_eq!(stamps.list.count, 0);
    }

    #[test]
    fn a_full_list_takes_no_more() {
        let mut stamps = Stamps::new(Layers::of(&[Layer::Write]));
        for _ in 0..abi::STAMPS_MAX {
            stamps.within(Layer::Write, || ());
        }
        assert_eq!(stamps.list.count as usize, abi::STAMPS_MAX);
    }

    #[test]
    fn a_writer_has_one_number_that_is_not_zero() {
        assert_eq!(writer_id(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(writer_id(b"a"), writer_id(b"b"));
        assert_ne!(writer_id(&[]), 0);
    }
}
