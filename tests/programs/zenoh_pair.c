/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of zenoh-c that knows nothing of lagometer: `zenoh_pair COUNT BYTES` publishes messages that differ in
 * their last byte, and then, one by one, messages that are alike. A third key has no subscriber. It fails unless each
 * subscriber got what was put, in order, with its own context, and was dropped once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zenohc_stub.h"

typedef struct {
  int count, wrong, dropped;
  size_t bytes;
} Seen;

static void count(z_sample* sample, void* context) {
  Seen* const seen = context;
  seen->wrong += sample->payload.size != seen->bytes;
  __atomic_add_fetch(&seen->count, 1, __ATOMIC_RELEASE);
}
static void drop(void* context) { ++((Seen*)context)->dropped; }

static z_bytes message(size_t size, int last) {
  z_bytes made = {malloc(size), size};
  memset(made.data, 'x', size);
  made.data[size - 1] = (uint8_t)last;
  return made;
}

int main(int words, char** word) {
  if (words != 3) return 2;
  const int messages = atoi(word[1]);
  const size_t bytes = (size_t)atoi(word[2]);
  Seen numbered = {0, 0, 0, bytes}, alike = numbered;
  z_owned_closure_sample_t first = {&numbered, count, drop}, second = {&alike, count, drop};
  stub_open();
  z_declare_subscriber(NULL, NULL, "robot/numbered", &first, NULL);
  z_declare_subscriber(NULL, NULL, "robot/alike", &second, NULL);
  for (int number = 0; number < messages; ++number) {
    z_bytes made = message(bytes, number);
    z_publisher_put("robot/numbered", &made, NULL);
  }
  for (int number = 0; number < messages; ++number) {
    z_bytes made = message(bytes, 'x'), unheard = message(bytes, 'x');
    z_put(NULL, "robot/alike", &made, NULL);
    z_put(NULL, "robot/unheard", &unheard, NULL);
    while (__atomic_load_n(&alike.count, __ATOMIC_ACQUIRE) <= number) usleep(100);
  }
  z_bytes refused = message(bytes, 0);
  const int result = z_publisher_put("", &refused, NULL);
  free(refused.data);
  stub_close();
  return result != -1 || numbered.count != messages || alike.count != messages || numbered.wrong || alike.wrong ||
         numbered.dropped != 1 || alike.dropped != 1;
}
