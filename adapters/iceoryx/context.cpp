// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <unistd.h>

#include <exception>
#include <functional>
#include <iceoryx_hoofs/error_handling/error_handling.hpp>
#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>

#include "roudi.hpp"

namespace lagometer::iceoryx {

namespace {

thread_local const char* error_name = nullptr;

/// Replaces iceoryx's own handler, which prints for every chunk that it could not get and, in the distributions'
/// builds, aborts on errors that the caller also gets. Errors that iceoryx can't continue after still end the process.
void note_error(const iox::Error error, const std::function<void()>& /*unused*/, const iox::ErrorLevel level) {
  error_name = iox::ErrorHandler::toString(error);
  if (level != iox::ErrorLevel::FATAL) return;
  log(LAGOMETER_LOG_ERROR, std::string("iceoryx can't go on: ") + error_name);
  std::terminate();
}

std::string runtime_name() {
  char text[64];
  std::snprintf(text, sizeof text, "iceoryx-lagometer-%d-%llx", static_cast<int>(getpid()),
                static_cast<unsigned long long>(now_ns()));
  return text;
}

iox::capro::IdString_t identifier(const std::string& text) {
  if (text.size() > iox::capro::IdString_t().capacity())
    throw Error(LAGOMETER_INVALID, "iceoryx: a name has at most " +
                                       std::to_string(iox::capro::IdString_t().capacity()) + " characters, not '" +
                                       text + "'");
  return {iox::cxx::TruncateToCapacity, text.c_str(), text.size()};
}

/// Once per process. If RouDi is not running, iceoryx waits a minute for it and then ends the process, so this checks
/// first.
void start_runtime() {
  roudi::require("iceoryx");
  static const iox::cxx::GenericRAII handler = iox::ErrorHandler::setTemporaryErrorHandler(note_error);
  static const bool started = [] {
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(iox::log::LogLevel::kFatal,
                                                             iox::log::LogLevelOutput::kHideLogLevel);
    const std::string name = runtime_name();
    iox::runtime::PoshRuntime::initRuntime({iox::cxx::TruncateToCapacity, name.c_str(), name.size()});
    return true;
  }();
  static_cast<void>(started);
}

}  // namespace

const char* last_error() noexcept { return error_name; }
void forget_error() noexcept { error_name = nullptr; }

Context::Context(const lagometer_context_config& config) : instance_("domain " + std::to_string(config.domain)) {
  refuse_settings(abilities.adapter, config);
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "iceoryx: it has no security to set up");
  start_runtime();
}

iox::capro::ServiceDescription Context::service(const PayloadType& type, const std::string& topic) const {
  const std::string name = type.fixed ? "lagometer::Fixed" + std::to_string(type.bytes_max) : "lagometer::Bytes";
  return {identifier(name), identifier(instance_), identifier(topic)};
}

iox::popo::Listener& Context::listener() {
  const std::scoped_lock lock(start_mutex_);
  if (!listener_) listener_ = std::make_unique<iox::popo::Listener>();
  return *listener_;
}

}  // namespace lagometer::iceoryx
