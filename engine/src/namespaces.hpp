// SPDX-License-Identifier: Apache-2.0
// A private machine for one trial: own network (a loopback that carries multicast), mounts (an own /dev/shm), IPC
// objects and process numbers. Everything made inside vanishes with the first process.
#pragma once

#include <string>
#include <vector>

namespace lagometer::supervisor {

struct Isolation {
  bool user_namespace = false;
  std::vector<std::string> warnings;
};

/// Enters new namespaces; only children are in the new process-number namespace. Throws std::runtime_error with what
/// the machine refuses and what to do.
Isolation enter_namespaces();

/// Inside, in the first process: mounts and the loopback. Adds to `warnings` what is not essential; throws on the rest.
void furnish(Isolation& isolation);

}  // namespace lagometer::supervisor
