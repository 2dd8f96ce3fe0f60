// SPDX-License-Identifier: Apache-2.0
// Sees which threads a library's own code creates, and whether each of them calls the host's thread_begin.
#pragma once

#include <cstdint>
#include <string>

namespace lagometer::conformance {

/// From now on, watches the threads that the library with this path creates: by pthread_create or std::thread. Those of
/// a middleware in another library are not among them.
void watch_threads_of(const std::string& library);

/// Whether they are watched: not if it is not loaded, nor in a build with sanitizers, which have their own
/// pthread_create.
bool threads_are_watched() noexcept;

/// The host's thread_begin was called on this thread.
void note_thread_begin() noexcept;

/// Whether this is one of the watched threads, and has not called thread_begin.
bool on_silent_thread() noexcept;

/// How many watched threads have not called thread_begin: so far, and among those that have ended.
uint64_t silent_threads() noexcept;
uint64_t silent_threads_ended() noexcept;

}  // namespace lagometer::conformance
