// SPDX-License-Identifier: Apache-2.0
#include "inner.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

namespace lagometer::faulty {
namespace {

namespace fs = std::filesystem;

thread_local std::string failure;

// The same host, but it listens to failures: the inner adapter's error texts are needed here, too.
const lagometer_host& listening_host() {
  static const lagometer_host instance = [] {
    lagometer_host copy = *host;
    copy.fail = [](void* self, lagometer_string message) noexcept {
      failure = view(message);
      host->fail(self, message);
    };
    return copy;
  }();
  return instance;
}

fs::path own_library() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&open_inner), &info) != 0 ? fs::path(info.dli_fname) : fs::path();
}

std::vector<fs::path> candidates(const std::string& over) {
  const std::string file = "liblagometer_" + over + ".so";
  std::vector<fs::path> found;
  if (const char* path = std::getenv("LAGOMETER_ADAPTER_PATH"); path != nullptr) {
    std::stringstream entries(path);
    for (std::string entry; std::getline(entries, entry, ':');) {
      if (entry.empty()) continue;
      found.push_back(fs::path(entry) / over / file);
      found.push_back(fs::path(entry) / file);
    }
  }
  found.push_back(own_library().parent_path().parent_path() / over / file);
  return found;
}

std::string find_library(const std::string& over) {
  std::string looked;
  for (const fs::path& candidate : candidates(over)) {
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) return fs::absolute(candidate, ignored).string();
    looked.append(looked.empty() ? "" : ", ").append(candidate.string());
  }
  throw Error(LAGOMETER_INVALID, "faulty: no adapter '" + over + "' to wrap: looked for " + looked);
}

// Once per library: entering it writes where its own threads read. The inner adapter may be older or newer than this
// one: functions it does not have are null.
lagometer_adapter_table enter(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(LAGOMETER_FAILED, std::string("faulty: can't open the adapter: ") + dlerror());
  using Entry = const lagometer_adapter_table* (*)(const lagometer_host*);
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, "lagometer_adapter"));
  const lagometer_adapter_table* const table = entry == nullptr ? nullptr : entry(&listening_host());
  if (table == nullptr || table->size < LAGOMETER_ADAPTER_TABLE_SIZE_1_0) {
    throw Error(LAGOMETER_FAILED,
                "faulty: " + file + " is no adapter of ABI version " + std::to_string(LAGOMETER_ABI_VERSION));
  }
  lagometer_adapter_table whole{};
  std::memcpy(&whole, table, std::min<size_t>(table->size, sizeof whole));
  whole.size = sizeof whole;
  return whole;
}

}  // namespace

const lagometer_adapter_table& open_inner(const std::string& over, const std::string& library) {
  if (over == "faulty") throw Error(LAGOMETER_INVALID, "faulty: can't wrap itself; name another adapter in 'over'");
  const std::string file = library.empty() ? find_library(over) : library;
  static std::mutex mutex;
  static std::map<std::string, lagometer_adapter_table> opened;
  const std::lock_guard lock(mutex);
  const auto known = opened.find(file);
  return known != opened.end() ? known->second : opened.emplace(file, enter(file)).first->second;
}

std::string inner_failure() { return failure.empty() ? "the inner adapter gave no reason" : failure; }

void check_inner(lagometer_status status) {
  if (status < 0) throw Error(status, inner_failure());
}

}  // namespace lagometer::faulty
