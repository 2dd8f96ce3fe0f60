// SPDX-License-Identifier: Apache-2.0
// A library with two names of Cyclone DDS (-DLIBRARY), and a program that waits again and again, writes once between.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int32_t dds_waitset_wait(int32_t set, intptr_t* found, size_t size, int64_t longest);
int32_t dds_write(int32_t writer, const void* data);

#ifdef LIBRARY
static int32_t waits;
int32_t dds_waitset_wait(int32_t set, intptr_t* found, size_t size, int64_t longest) {
  (void)set, (void)found, (void)size, (void)longest;
  return ++waits;
}
int32_t dds_write(int32_t writer, const void* data) {
  (void)writer, (void)data;
  return 0;
}
#else
int main(int count, char** words) {
  const int waits = count > 1 ? atoi(words[1]) : 1;
  for (int wait = 0; wait < 2 * waits; ++wait) {
    if (wait == waits) dds_write(1, &wait);
    dds_waitset_wait(1, NULL, 0, 0);
  }
  return 0;
}
#endif
