// SPDX-License-Identifier: Apache-2.0
// Creates writers and readers as later versions of Fast DDS 2 do, whose functions have one argument more, by the
// functions of the Fast DDS that is installed. These are asked of that library, so that a probe sees only the new ones.
#include <dlfcn.h>

#include "fastdds_pooled.hpp"

namespace {

using Create = void*(void*, void*, const void*, void*, const void*);

Create* of_library(const char* name) {
  void* const library = dlopen("libfastrtps.so", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Create*>(dlsym(library, name));
}

}  // namespace

void* create_pooled_writer(void* publisher, void* topic, const void* qos, void* listener, const void* mask, void*) {
  return of_library(CREATE_WRITER)(publisher, topic, qos, listener, mask);
}

void* create_pooled_reader(void* subscriber, void* topic, const void* qos, void* listener, const void* mask, void*) {
  return of_library(CREATE_READER)(subscriber, topic, qos, listener, mask);
}
