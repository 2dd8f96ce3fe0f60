// SPDX-License-Identifier: Apache-2.0
// The extension "services/1" for adapters written with binding.hpp.
//
// A Traits type that has it creates both ends of a client or server at once:
//   static std::pair<std::unique_ptr<Writer>, std::unique_ptr<Reader>> make_client(Node&, request, reply);
//   static std::pair<std::unique_ptr<Writer>, std::unique_ptr<Reader>> make_server(Node&, request, reply);
// (both configurations are const lagometer_endpoint_config&), and its Writer has answer(const lagometer_sample&).
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "binding.hpp"
#include "lagometer/services.h"

namespace lagometer {

/// Calls make(node, request, reply) with whole configurations and passes both ends on.
template <typename Traits, typename Make>
lagometer_status make_ends(lagometer_node* node, const lagometer_endpoint_config* request,
                           const lagometer_endpoint_config* reply, lagometer_writer** writer, lagometer_reader** reader,
                           Make&& make) noexcept {
  return guarded([&] {
    const WholeEndpoint whole_request(*request);
    const WholeEndpoint whole_reply(*reply);
    if (view(request->topic) != view(reply->topic))
      throw Error(LAGOMETER_INVALID, "a request and a reply of two services: both have the service's name");
    auto ends = make(*reinterpret_cast<typename Traits::Node*>(node), whole_request.config, whole_reply.config);
    *writer = reinterpret_cast<lagometer_writer*>(ends.first.release());
    *reader = reinterpret_cast<lagometer_reader*>(ends.second.release());
    return LAGOMETER_OK;
  });
}

template <typename Traits>
const lagometer_services_table* services_table() noexcept {
  // Field by field: some adapters are compiled as C++17.
  static const lagometer_services_table table = [] {
    lagometer_services_table made{};
    made.size = sizeof made;
    made.abi_version = LAGOMETER_ABI_VERSION;
    made.client_create = [](lagometer_node* node, const lagometer_endpoint_config* request,
                            const lagometer_endpoint_config* reply, lagometer_writer** requests,
                            lagometer_reader** replies) noexcept {
      return make_ends<Traits>(node, request, reply, requests, replies, &Traits::make_client);
    };
    made.server_create = [](lagometer_node* node, const lagometer_endpoint_config* request,
                            const lagometer_endpoint_config* reply, lagometer_reader** requests,
                            lagometer_writer** replies) noexcept {
      return make_ends<Traits>(node, request, reply, replies, requests, &Traits::make_server);
    };
    made.answer = [](lagometer_writer* replies, const lagometer_sample* request) noexcept {
      return guarded([&] {
        reinterpret_cast<typename Traits::Writer*>(replies)->answer(*request);
        return LAGOMETER_OK;
      });
    };
    return made;
  }();
  return &table;
}

/// What extension() returns for this name; null for any other name.
template <typename Traits>
const void* services_extension(uint32_t kind, std::string_view name) noexcept {
  return kind == LAGOMETER_OBJECT_NODE && name == LAGOMETER_SERVICES_EXTENSION ? services_table<Traits>() : nullptr;
}

}  // namespace lagometer
