// SPDX-License-Identifier: Apache-2.0
// A payload type of adapter.h: the middleware's type for it, and the sizes of its messages.
#pragma once

#include <cstdint>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "binding.hpp"
#include "message_types.hpp"

namespace lagometer::fastdds {

class Context;

/// A payload type of the registry, registered with the participant.
class Type {
 public:
  static constexpr bool kTakesKeys = true;
  /// Throws Error(LAGOMETER_INVALID or LAGOMETER_UNSUPPORTED) if there is no such type.
  Type(Context& context, const lagometer_type_config& config);

  /// The DDS name of lagometer's topic `topic`.
  [[nodiscard]] std::string topic_name(std::string_view topic) const;
  /// A message of the largest size; not for type fixed, whose memory is the middleware's.
  [[nodiscard]] std::unique_ptr<Message> make_message() const;
  /// Throws Error(LAGOMETER_INVALID) if a message on this topic can't have this many bytes.
  void check(uint64_t bytes, const std::string& topic) const;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] uint64_t bytes_max() const noexcept { return bytes_max_; }
  [[nodiscard]] bool fixed() const noexcept { return fixed_; }
  /// For a type with a key; otherwise 0.
  [[nodiscard]] uint32_t instances() const noexcept { return instances_; }

 private:
  std::optional<ros2::Message> message_;  // nothing: lagometer's own
  std::string name_;                      // on the wire
  uint64_t bytes_max_;
  bool fixed_;
  uint32_t instances_;
};

}  // namespace lagometer::fastdds
