// SPDX-License-Identifier: Apache-2.0
// IPv4 socket addresses, and the same as text: 127.0.0.1:4567.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <string>

#include "binding.hpp"

namespace lagometer::internet {

inline constexpr const char* loopback = "127.0.0.1";

/// This address with this port; 0: the kernel chooses one.
inline sockaddr_in end_at(const std::string& address, uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1)
    throw Error(LAGOMETER_INVALID, "'" + address + "' is not an IPv4 address");
  return result;
}

inline std::string text_of(const sockaddr_in& end) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &end.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(end.sin_port));
}

/// Parses the text from text_of().
inline sockaddr_in end_from(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) throw Error(LAGOMETER_INVALID, "'" + text + "' is not an address with a port");
  return end_at(text.substr(0, colon), static_cast<uint16_t>(std::stoul(text.substr(colon + 1))));
}

}  // namespace lagometer::internet
