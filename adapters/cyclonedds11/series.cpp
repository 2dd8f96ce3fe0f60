// SPDX-License-Identifier: Apache-2.0
// Cyclone DDS 11 passes messages to iceoryx through its interface for such transports, PSMX ("pub-sub message
// exchange").
#include "series.hpp"

#include <atomic>
#include <iceoryx_posh/popo/listener.hpp>

#include "errors.hpp"

namespace lagometer::cyclonedds {

const char* participant_index_default() noexcept { return "default"; }

// It is built without them (vendor/build.cmake).
std::string security_plugins() { throw unsupported("this Cyclone DDS is built without security: leave it out"); }

namespace shared_memory {

namespace {

std::atomic<uint64_t> readers{0};

}  // namespace

bool is_built_in() noexcept { return true; }

// Its instances are named after the domain, so domains are separate. If one interface is named, the network's must be
// named, too.
Configuration configuration(uint32_t) {
  return {.general =
              "<Interfaces><NetworkInterface autodetermine=\"true\"/>"
              "<PubSubMessageExchange type=\"iox\"/></Interfaces>",
          .beside = ""};
}

void describe(uint32_t, nlohmann::json& settings) {
  settings["General/Interfaces/PubSubMessageExchange[@type]"] = {{"value", "iox"}, {"default", nullptr}};
}

bool carries(dds_entity_t endpoint) { return dds_is_shared_memory_available(endpoint); }

bool lends(dds_entity_t writer) { return carries(writer); }

dds_return_t lend(dds_entity_t writer, void** sample) { return dds_request_loan(writer, sample); }

bool shows_in_place(dds_entity_t reader) { return carries(reader); }

// The plug-in attaches all readers of a domain to one iceoryx listener, and crashes on one that does not fit.
std::shared_ptr<void> reader_place() {
  constexpr uint64_t kMost = iox::popo::Listener::capacity();
  std::shared_ptr<void> place(&readers, [](void*) { readers.fetch_sub(1); });
  if (readers.fetch_add(1) < kMost) return place;
  throw Error(LAGOMETER_NO_RESOURCE, std::string(adapter_name) +
                                         ": with the option shared_memory a process has at most " +
                                         std::to_string(kMost) + " readers");
}

}  // namespace shared_memory
}  // namespace lagometer::cyclonedds
