// SPDX-License-Identifier: Apache-2.0
//! When a message was in which layer of the middleware, and what identifies it there (`lagometer/stamps.h`).
use std::cell::Cell;

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

/// When code ran that the middleware calls back within one of its calls, such as a deserialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    begin: Moment,
    end: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    time_ns: i64,
    cpu: u32,
}

impl Moment {
    fn now() -> Self {
        Self { time_ns: crate::now_ns(), cpu: crate::current_cpu() }
    }

    fn stamp(self, layer: u32) -> abi::Stamp {
        abi::Stamp { time_ns: self.time_ns, layer, cpu: self.cpu }
    }
}

thread_local! {
    /// Whether this thread is in [`Stamps::around`], and wants to know when code that is called back ran.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static LAST: Cell<Option<Span>> = const { Cell::new(None) };
}

impl Span {
    /// Runs code that the middleware calls back. Returns also when it ran, if this thread is in
    /// [`Stamps::around`], which returns the last one.
    #[inline]
    pub fn of<T>(function: impl FnOnce() -> T) -> (T, Option<Self>) {
        if !WATCHED.get() {
            return (function(), None);
        }
        let (result, span) = Self::timed(function);
        LAST.set(Some(span));
        (result, Some(span))
    }

    /// The same on a thread of the middleware's, where no call of ours is: always with the time.
    #[inline]
    pub fn timed<T>(function: impl FnOnce() -> T) -> (T, Self) {
        let begin = Moment::now();
        let result = function();
        (result, Self { begin, end: Moment::now() })
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

    /// Like `within`, for a call in which the middleware calls back code that belongs to another layer: if
    /// that layer was asked for, [`Span::of`] notes when it ran. Returns the last one of this call: a
    /// listener that the middleware calls within it may make such calls in turn.
    #[inline]
    pub fn around<T>(
        &mut self,
        layer: Layer,
        inner: Layer,
        function: impl FnOnce() -> T,
    ) -> (T, Option<Span>) {
        let outer = (WATCHED.replace(self.asked.has(inner)), LAST.replace(None));
        let result = self.within(layer, function);
        WATCHED.set(outer.0);
        (result, LAST.replace(outer.1))
    }

    /// Stamps the layer within the call that was stamped last, in place of an earlier one. Nothing, if the
    /// code did not run within that call.
    pub fn set_inner(&mut self, inner: Layer, span: Option<Span>) {
        let (inner, at, count) = (inner as u32, &mut self.list.at, self.list.count as usize);
        let mut kept = 0;
        for index in 0..count {
            if at[index].layer & !abi::LAYER_END != inner {
                at[kept] = at[index];
                kept += 1;
            }
        }
        self.list.count = kept as u32;
        let Some(Span { begin, end }) = span.filter(|_| self.asked.0 & (1 << inner) != 0) else { return };
        let place = if kept < 2 { kept } else { kept - 1 };
        let inside = kept < 2 || (at[place - 1].time_ns <= begin.time_ns && end.time_ns <= at[place].time_ns);
        if inside && kept + 2 <= abi::STAMPS_MAX {
            at.copy_within(place..kept, place + 2);
            at[place] = begin.stamp(inner);
            at[place + 1] = end.stamp(inner | abi::LAYER_END);
            self.list.count = kept as u32 + 2;
        }
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

    fn layers_of(stamps: &Stamps) -> Vec<u32> {
        stamps.list.at[..stamps.list.count as usize].iter().map(|stamp| stamp.layer).collect()
    }

    const AROUND: [u32; 4] = [
        abi::LAYER_TAKE,
        abi::LAYER_DESERIALISE,
        abi::LAYER_DESERIALISE | abi::LAYER_END,
        abi::LAYER_TAKE | abi::LAYER_END,
    ];

    #[test]
    fn code_that_is_called_back_is_a_layer_within_the_call() {
        let mut stamps = Stamps::new(Layers::of(&[Layer::Take, Layer::Deserialise]));
        let (spans, last) = stamps.around(Layer::Take, Layer::Deserialise, || {
            [Span::of(|| ()).1, Span::of(|| ()).1] // of two messages
        });
        assert_eq!(last, spans[1]);
        for span in spans {
            stamps.set_inner(Layer::Deserialise, span);
            assert_eq!(layers_of(&stamps), AROUND);
            let times: Vec<i64> = stamps.list.at[..4].iter().map(|stamp| stamp.time_ns).collect();
            assert!(times.is_sorted(), "{times:?}");
            assert_eq!(times[1], span.unwrap().begin.time_ns);
        }
        stamps.set_inner(Layer::Deserialise, None);
        assert_eq!(layers_of(&stamps), [AROUND[0], AROUND[3]]);
    }

    #[test]
    fn code_that_ran_in_an_earlier_call_is_left_out() {
        let mut stamps = Stamps::new(Layers::of(&[Layer::Take, Layer::Deserialise]));
        let at = |time_ns| Moment { time_ns: crate::now_ns() + time_ns, cpu: 0 };
        let early = Some(Span { begin: at(-2), end: at(-1) });
        stamps.begin();
        assert_eq!(stamps.around(Layer::Take, Layer::Deserialise, || ()), ((), None));
        stamps.set_inner(Layer::Deserialise, early);
        assert_eq!(layers_of(&stamps), [AROUND[0], AROUND[3]]);
    }

    #[test]
    fn a_call_within_a_call_keeps_its_spans_to_itself() {
        let stamps = |asked: &[Layer]| Stamps::new(Layers::of(asked));
        let mut outer = stamps(&[Layer::Serialise]);
        let mut inner = stamps(&[Layer::Serialise]);
        let mut without = stamps(&[Layer::Write]);
        let (own, last) = outer.around(Layer::Write, Layer::Serialise, || {
            let own = Span::of(|| ()).1;
            assert_eq!(inner.around(Layer::Write, Layer::Serialise, || ()), ((), None));
            let unasked = without.around(Layer::Write, Layer::Serialise, || Span::of(|| 7));
            assert_eq!(unasked, ((7, None), None));
            own
        });
        assert!(last.is_some() && last == own);
        let (its, last) = outer.around(Layer::Write, Layer::Serialise, || {
            inner.around(Layer::Write, Layer::Serialise, || Span::of(|| ()).1).1
        });
        assert!(its.is_some() && last.is_none());
        assert_eq!(Span::of(|| 7), (7, None), "outside of both");
    }

    #[test]
    fn nobody_pays_for_a_layer_that_was_not_asked_for() {
        let mut stamps = Stamps::new(Layers::of(&[Layer::Take]));
        assert_eq!(stamps.around(Layer::Take, Layer::Deserialise, || Span::of(|| 7)), ((7, None), None));
        assert_eq!(Span::of(|| 8), (8, None), "outside of a call");
        let mut stamps = Stamps::new(Layers::of(&[Layer::Deserialise]));
        let (_, span) = stamps.around(Layer::Take, Layer::Deserialise, || Span::of(|| ()).1);
        stamps.set_inner(Layer::Deserialise, span);
        assert_eq!(layers_of(&stamps), [AROUND[1], AROUND[2]]);
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
