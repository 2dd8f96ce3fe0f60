// SPDX-License-Identifier: Apache-2.0
// When a message is serialised or deserialised, by code that the middleware calls back within its own call that writes
// or takes, on the caller's thread.
#pragma once

#include <array>
#include <cstdint>

#include "layer_stamps.hpp"

namespace lagometer {

/// Listens to such code on this thread while it exists. A write() may deliver to a reader of this process, whose
/// listener takes and writes in turn. Then the inner object listens, and afterwards the outer one again.
class LayerNotes {
 public:
  static constexpr uint32_t kNotesMax = 32;
  struct Note {
    const void* data;  // the processed sample
    lagometer_stamp begin, end;
  };

  /// `layer`: LAGOMETER_LAYER_SERIALISE or _DESERIALISE; `listens`: if false, it only keeps the outer one from
  /// listening.
  explicit LayerNotes(uint32_t layer, bool listens = true) noexcept
      : layer_(listens ? layer : LAGOMETER_LAYER_NONE), outer_(current_) {
    current_ = this;
  }
  ~LayerNotes() { current_ = outer_; }
  LayerNotes(const LayerNotes&) = delete;
  LayerNotes& operator=(const LayerNotes&) = delete;

  /// The note about this sample; null: it was not processed.
  [[nodiscard]] const Note* find(const void* data) const noexcept {
    for (uint32_t index = 0; index < count_; ++index) {
      if (notes_[index].data == data) return &notes_[index];
    }
    return nullptr;
  }

 private:
  friend class LayerWork;
  static thread_local LayerNotes* current_;
  uint32_t layer_;
  LayerNotes* outer_;
  uint32_t count_ = 0;
  std::array<Note, kNotesMax> notes_;  // only the first count_ are used
};

/// Marks such code's work on a sample. Costs only one check if nobody listens.
class LayerWork {
 public:
  LayerWork(uint32_t layer, const void* data) noexcept {
    LayerNotes* const notes = LayerNotes::current_;
    if (notes == nullptr || notes->layer_ != layer || notes->count_ == LayerNotes::kNotesMax) return;
    note_ = &notes->notes_[notes->count_++];
    *note_ = {data, stamp_of(layer), {}};
  }
  ~LayerWork() {
    if (note_ != nullptr) note_->end = stamp_of(note_->begin.layer | LAGOMETER_LAYER_END);
  }
  LayerWork(const LayerWork&) = delete;
  LayerWork& operator=(const LayerWork&) = delete;

 private:
  LayerNotes::Note* note_ = nullptr;
};

inline thread_local LayerNotes* LayerNotes::current_ = nullptr;

/// Writes a message's stamps: of the middleware's call, if requested, and of the work within it, if it was noted.
inline void add_stamps(lagometer_stamp_list& stamps, bool call, const lagometer_stamp& entered,
                       const LayerNotes::Note* note, const lagometer_stamp& left) noexcept {
  stamps.count = 0;
  if (call) add_stamp(stamps, entered);
  if (note != nullptr) {
    add_stamp(stamps, note->begin);
    add_stamp(stamps, note->end);
  }
  if (call) add_stamp(stamps, left);
}

}  // namespace lagometer
