// SPDX-License-Identifier: Apache-2.0
#include "writers.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "next.hpp"

namespace lagometer::probes {
namespace {

/// A writer that this thread has asked about.
struct Asked {
  int32_t reader = 0;
  uint64_t number = 0;  // 0: the place is free
  std::array<uint8_t, 16> guid{};
};

/// The last ones; a thread that takes from more writers asks again.
struct AskedLast {
  std::array<Asked, 64> places{};
  size_t next = 0;
};

thread_local AskedLast asked_last __attribute__((tls_model("initial-exec")));

/// Topics with which Cyclone DDS reports endpoints (dds.h: DDS_MIN_PSEUDO_HANDLE). Asked about the writers of their
/// readers, which have none, it crashes.
constexpr int32_t kOwnTopicMin = 0x7fff0000;

/// Zeros if the library does not know the writer.
std::array<uint8_t, 16> ask(void* caller, int32_t reader, uint64_t number) noexcept {
  std::array<uint8_t, 16> guid{};
  auto* const topic_of = reinterpret_cast<int32_t (*)(int32_t)>(function_of(caller, "dds_get_topic"));
  auto* const get = reinterpret_cast<void* (*)(int32_t, uint64_t)>(  // dds_builtintopic_endpoint_t*
      function_of(caller, "dds_get_matched_publication_data"));
  auto* const free = reinterpret_cast<void (*)(void*)>(function_of(caller, "dds_builtintopic_free_endpoint"));
  if (topic_of == nullptr || get == nullptr || free == nullptr) return guid;
  if (const int32_t topic = topic_of(reader); topic <= 0 || topic >= kOwnTopicMin) return guid;
  if (void* const endpoint = get(reader, number)) {
    std::memcpy(guid.data(), endpoint, guid.size());
    free(endpoint);
  }
  return guid;
}

}  // namespace

void put_guid(const void* guid, KeyRecord& key) noexcept {
  std::memcpy(key.prefix.data(), guid, key.prefix.size());
  std::memcpy(key.writer.data(), static_cast<const uint8_t*>(guid) + key.prefix.size(), key.writer.size());
}

void put_cyclone_writer(void* caller, int32_t reader, uint64_t number, KeyRecord& key) noexcept {
  if (number == 0) return;
  auto& [places, next] = asked_last;
  const auto known =
      std::ranges::find_if(places, [&](const Asked& each) { return each.number == number && each.reader == reader; });
  if (known != places.end()) return put_guid(known->guid.data(), key);
  const auto guid = ask(caller, reader, number);
  places[next] = {reader, number, guid};
  next = (next + 1) % places.size();
  put_guid(guid.data(), key);
}

}  // namespace lagometer::probes
