// SPDX-License-Identifier: Apache-2.0
#include "content.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "envelope.hpp"
#include "plan_bounds.hpp"
#include "random.hpp"

namespace lagometer::engine {

namespace {

constexpr size_t kMadeBytes = size_t{1} << 20;  // larger than a compressor's window

std::vector<uint8_t> random_bytes(uint64_t seed) {
  std::vector<uint8_t> bytes(kMadeBytes);
  Random random(seed);
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.bits();
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  return bytes;
}

std::vector<uint8_t> file_bytes(const ContentPlan& plan) {
  std::ifstream file(plan.path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("content: " + plan.path + " can't be read: " + std::strerror(errno));
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (size <= 0 || size > static_cast<std::streamoff>(kContentFileBytesMax))
    throw std::runtime_error("content: " + plan.path + " is empty or larger than 64 MiB");
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!file) throw std::runtime_error("content: " + plan.path + " can't be read to its end");
  if (::crc32(0, bytes.data(), static_cast<uInt>(bytes.size())) != plan.crc32)
    throw std::runtime_error("content: " + plan.path + " is not the file that the study was made with");
  return bytes;
}

}  // namespace

Content::Content(const ContentPlan& plan, bool text) {
  if (text && plan.kind == ContentKind::recorded)
    throw std::runtime_error("content: " + plan.path + " contains binary data, but the type string holds only text");
  if (plan.kind == ContentKind::zeros) bytes_ = std::vector<uint8_t>(kMadeBytes);
  if (plan.kind == ContentKind::random) bytes_ = random_bytes(plan.seed);
  if (plan.kind == ContentKind::recorded) bytes_ = file_bytes(plan);
  if (text) std::transform(bytes_.begin(), bytes_.end(), bytes_.begin(), as_character);
}

void Content::fill(lagometer_message& message, uint64_t sequence) const noexcept {
  if (bytes_.empty()) return;
  uint64_t total = 0;
  for (uint32_t region = 0; region < message.region_count; ++region) total += message.regions[region].size;
  // Each message continues where the last one ended.
  size_t from = static_cast<size_t>((sequence % bytes_.size()) * (total % bytes_.size()) % bytes_.size());
  for (uint32_t region = 0; region < message.region_count; ++region) {
    uint8_t* to = message.regions[region].data;
    for (uint64_t left = message.regions[region].size; left > 0;) {
      const uint64_t count = std::min<uint64_t>(left, bytes_.size() - from);
      std::memcpy(to, bytes_.data() + from, count);
      to += count;
      left -= count;
      from = (from + count) % bytes_.size();
    }
  }
}

}  // namespace lagometer::engine
