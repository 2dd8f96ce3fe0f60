// SPDX-License-Identifier: Apache-2.0
// Tells ThreadSanitizer what it can't see: that the middleware, whose code is not instrumented, passes a message's
// memory between threads in order. Without ThreadSanitizer these calls do nothing.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lagometer {

/// Call before passing memory to the middleware: reads and writes before this are done.
inline void passes_on([[maybe_unused]] void* memory) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(memory);
#endif
}

/// Call after getting memory from the middleware: its previous owner has passed it on.
inline void was_passed([[maybe_unused]] void* memory) noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(memory);
#endif
}

}  // namespace lagometer
