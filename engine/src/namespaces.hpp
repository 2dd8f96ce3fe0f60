// SPDX-License-Identifier: Apache-2.0
// A private machine for one trial: its own network (a loopback that carries multicast), mounts (its own /dev/shm), IPC
// objects and process numbers. Everything created inside disappears with the first process.
#pragma once

#include <string>
#include <vector>

namespace lagometer::supervisor {

struct Isolation {
  bool user_namespace = false;
  std::vector<std::string> warnings;
};

/// Enters new namespaces; only children are in the new PID namespace. Throws std::runtime_error with what the machine
/// refuses and what to do.
Isolation enter_namespaces();

/// Called inside, in the first process: sets up mounts and the loopback. Adds to `warnings` what is not essential;
/// throws otherwise.
void furnish(Isolation& isolation);

}  // namespace lagometer::supervisor
