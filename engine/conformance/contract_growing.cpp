// SPDX-License-Identifier: Apache-2.0
// The contract of growth: hosts and structs may be larger than the adapter's header knows them, or as small as in the
// first version.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "contract.hpp"
#include "sizes.hpp"

namespace lagometer::conformance {

namespace {

constexpr uint8_t kUntouched = 0xC3;

/// A struct that the adapter fills, as small as in a host of the first version: everything after that belongs to
/// somebody else.
template <typename Struct>
class First {
 public:
  First() {
    bytes_.fill(kUntouched);
    std::memset(bytes_.data(), 0, kSize);
    value().size = static_cast<uint32_t>(kSize);
    value().abi_version = LAGOMETER_ABI_VERSION;
  }
  Struct& value() noexcept { return *std::launder(reinterpret_cast<Struct*>(bytes_.data())); }
  /// Throws Broken if `call` wrote beyond the struct, or changed the size.
  void check(const char* call) {
    if (std::any_of(bytes_.begin() + kSize, bytes_.end(), [](uint8_t byte) { return byte != kUntouched; }))
      throw Broken(std::string(call) + " wrote beyond the size of the struct that it was given");
    if (value().size != kSize) throw Broken(std::string(call) + " changed the size of the struct that it was given");
  }

 private:
  static constexpr size_t kSize = abi_host::size_1_0(Struct{});
  alignas(Struct) std::array<uint8_t, sizeof(Struct) + 64> bytes_;
};

struct LargerHost {
  lagometer_host host;
  std::array<uint8_t, 64> more;
};

/// Whether a host with this size gets a table; afterwards the adapter gets the normal host again.
bool served(Bed& bed, uint32_t size) {
  static LargerHost other{};
  other.host = host();
  std::memset(reinterpret_cast<uint8_t*>(&other) + LAGOMETER_HOST_SIZE_1_0, 0xEE,
              sizeof other - LAGOMETER_HOST_SIZE_1_0);
  if (size >= sizeof(lagometer_host)) other.host = host();
  other.host.size = size;
  const bool table = bed.adapter.entry()(&other.host) != nullptr;
  bed.adapter.entry()(&host());
  return table;
}

void larger_host(Bed& bed) {
  if (!served(bed, sizeof(LargerHost))) throw Broken("a host that is larger than this header's got no table");
}

void first_host(Bed& bed) {
  if (!served(bed, LAGOMETER_HOST_SIZE_1_0)) throw Broken("a host of the first version got no table");
}

void exchange(Bed& bed, Manner manner) {
  Pair pair(bed, bed.endpoint(), manner);
  pair.meet();
  pair.exchange(5);
}

void larger_structs(Bed& bed) { exchange(bed, {.growth = 64}); }
void first_structs(Bed& bed) { exchange(bed, {.first = true}); }

void send_first(Bed& bed, Writer& writer, const EndpointSpec& spec, uint64_t sequence) {
  First<lagometer_message> message;
  const auto& payload = engine::payload_type(spec.type);
  if (demand("borrow", [&] { return bed.table().borrow(writer.handle(), spec.bytes, &message.value()); }) != 0) return;
  message.check("borrow");
  fill(message.value(), {.kind = 0, .stream = writer.stream(), .sequence = sequence}, payload);
  demand("commit", [&] { return bed.table().commit(writer.handle(), &message.value()); });
  message.check("commit");
}

uint32_t take_first(Bed& bed, Reader& reader) {
  std::array<First<lagometer_sample>, 2> samples;
  uint32_t taken = 0;
  demand("take", [&] {
    return bed.table().take(reader.handle(), &samples[0].value(), sizeof samples[0], samples.size(), &taken);
  });
  for (auto& sample : samples) sample.check("take");
  uint32_t data = 0;
  for (uint32_t index = 0; index < taken; ++index) {
    const lagometer_sample& sample = samples[index].value();
    if ((sample.flags & LAGOMETER_SAMPLE_NOT_DATA) == 0 && open(sample).damage.empty()) ++data;
  }
  if (taken > 0) reader.release(&samples[0].value(), sizeof samples[0], taken);
  for (auto& sample : samples) sample.check("release");
  return data;
}

void first_structs_filled(Bed& bed) {
  const EndpointSpec spec = bed.endpoint();
  Pair pair(bed, spec);
  pair.meet();
  uint64_t sequence = 0;
  uint32_t came = 0;
  wait_until("no message came in a struct of the first version", [&] {
    send_first(bed, pair.writer, spec, sequence++);
    if (pair.waitset) pair.waitset->wait(now_ns() + kMillisecond_ns);
    came += take_first(bed, pair.reader);
    return came >= 4;
  });
  First<lagometer_matched> matched;
  demand("writer_matched", [&] { return bed.table().writer_matched(pair.writer.handle(), &matched.value()); });
  demand("reader_matched", [&] { return bed.table().reader_matched(pair.reader.handle(), &matched.value()); });
  matched.check("matched");
  First<lagometer_counters> counters;
  demand("writer_counters", [&] { return bed.table().writer_counters(pair.writer.handle(), &counters.value()); });
  demand("reader_counters", [&] { return bed.table().reader_counters(pair.reader.handle(), &counters.value()); });
  counters.check("counters");
}

}  // namespace

std::vector<Line> growing_lines() {
  return {{"entry: serves a host that has grown", larger_host},
          {"entry: serves a host of the first version", first_host},
          {"structs may be larger than this header's", larger_structs},
          {"structs may be those of the first version", first_structs},
          {"structs to fill: nothing is written beyond their size", first_structs_filled}};
}

}  // namespace lagometer::conformance
