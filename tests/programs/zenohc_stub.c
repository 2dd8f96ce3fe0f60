/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for zenoh-c where it is not installed: its functions that the probe and tests/programs/zenoh_pair.c use, with
 * their real signatures. One session, within a process: a thread hands what was put to the subscribers. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zenohc_stub.h"

#define STUB __attribute__((visibility("default")))
enum { kQueue = 1024, kSubscribers = 8 };

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  z_sample* queue[kQueue];
  unsigned put, got;
  bool ends;
  pthread_t thread;
  struct {
    const char* key;
    z_owned_closure_sample_t closure;
  } subscribers[kSubscribers];
  int count;
} session = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, false, 0, {{0}}, 0};

static void* deliver(void* unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&session.mutex);
    while (session.got == session.put && !session.ends) pthread_cond_wait(&session.changed, &session.mutex);
    z_sample* const sample = session.got < session.put ? session.queue[session.got++ % kQueue] : NULL;
    pthread_mutex_unlock(&session.mutex);
    if (sample == NULL) return NULL;
    for (int number = 0; number < session.count; ++number)
      if (strcmp(session.subscribers[number].key, sample->key) == 0)
        session.subscribers[number].closure._call(sample, session.subscribers[number].closure._context);
    free(sample->payload.data);
    free(sample);
  }
}

STUB void stub_open(void) { pthread_create(&session.thread, NULL, deliver, NULL); }

STUB void stub_close(void) {
  pthread_mutex_lock(&session.mutex);
  session.ends = true;
  pthread_cond_signal(&session.changed);
  pthread_mutex_unlock(&session.mutex);
  pthread_join(session.thread, NULL);
  for (int number = 0; number < session.count; ++number)
    session.subscribers[number].closure._drop(session.subscribers[number].closure._context);
}

static int8_t put(const char* key, z_bytes* payload) {
  z_sample* const sample = malloc(sizeof *sample);
  *sample = (z_sample){key, *payload};
  payload->data = NULL;
  pthread_mutex_lock(&session.mutex);
  session.queue[session.put++ % kQueue] = sample;
  pthread_cond_signal(&session.changed);
  pthread_mutex_unlock(&session.mutex);
  return 0;
}

STUB int8_t z_put(const void* given, const char* key, z_bytes* payload, void* options) {
  (void)given, (void)options;
  return put(key, payload);
}
STUB int8_t z_publisher_put(const char* publisher, z_bytes* payload, void* options) {
  (void)options;
  return publisher[0] == '\0' ? -1 : put(publisher, payload);
}
STUB const char* z_publisher_keyexpr(const char* publisher) { return publisher; }

STUB int8_t z_declare_subscriber(const void* given, void* out, const char* key, z_owned_closure_sample_t* closure,
                                 void* options) {
  (void)given, (void)out, (void)options;
  session.subscribers[session.count].key = key;
  session.subscribers[session.count++].closure = *closure;
  *closure = (z_owned_closure_sample_t){NULL, NULL, NULL};
  return 0;
}

STUB const z_bytes* z_bytes_loan(const z_bytes* owned) { return owned; }
STUB size_t z_bytes_len(const z_bytes* bytes) { return bytes->size; }
STUB z_bytes_reader_t z_bytes_get_reader(const z_bytes* bytes) { return (z_bytes_reader_t){bytes, 0, 0}; }
STUB size_t z_bytes_reader_read(z_bytes_reader_t* reader, uint8_t* to, size_t size) {
  const size_t left = reader->bytes->size - reader->at;
  const size_t read = size < left ? size : left;
  memcpy(to, reader->bytes->data + reader->at, read);
  reader->at += read;
  return read;
}
STUB int8_t z_bytes_reader_seek(z_bytes_reader_t* reader, int64_t offset, int origin) {
  const int64_t from = origin == SEEK_END ? (int64_t)reader->bytes->size : origin == SEEK_CUR ? (int64_t)reader->at : 0;
  if (from + offset < 0 || from + offset > (int64_t)reader->bytes->size) return -1;
  reader->at = (size_t)(from + offset);
  return 0;
}

STUB const char* z_sample_keyexpr(const z_sample* sample) { return sample->key; }
STUB const z_bytes* z_sample_payload(const z_sample* sample) { return &sample->payload; }
STUB void z_keyexpr_as_view_string(const char* key, z_view_string_t* out) {
  *out = (z_view_string_t){key, strlen(key), 0, 0};
}
STUB const z_view_string_t* z_view_string_loan(const z_view_string_t* view) { return view; }
STUB const char* z_string_data(const z_view_string_t* text) { return text->data; }
STUB size_t z_string_len(const z_view_string_t* text) { return text->size; }
