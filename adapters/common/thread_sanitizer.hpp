// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what it can't see: that a middleware, whose own code is not instrumented, passes a message's
// memory from one thread to another in order. Without a ThreadSanitizer these calls are nothing.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lagometer {

/// Before memory is given to the middleware: what was written there, or read, is done.
inline void passes_on([[maybe_unused]] void* memory) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(memory);
#endif
}

/// After memory was got from the middleware: whoever had it before has passed it on.
inline void was_passed([[maybe_unused]] void* memory) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(memory);
#endif
}

}  // namespace lagometer
