/* SPDX-License-Identifier: Apache-2.0
 *
 * lagometer/plain.h: what every adapter in C must check and report. C11. Nothing here is part of the ABI: it is
 * compiled into the adapter. (In C++, lagometer/binding.hpp does this and more.)
 */
#ifndef LAGOMETER_PLAIN_H
#define LAGOMETER_PLAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lagometer/adapter.h"

/* The host that loaded this library; set by lagometer_serves(). */
static const lagometer_host* lagometer_plain_host;

static inline lagometer_string lagometer_text(const char* words) { return (lagometer_string){words, strlen(words)}; }

static inline int lagometer_is(lagometer_string given, const char* word) {
  return given.size == strlen(word) && (given.size == 0 || memcmp(given.data, word, given.size) == 0);
}

/* Reports why a call fails, and returns its status: `return lagometer_refuse(LAGOMETER_UNSUPPORTED, "no listener")`. */
static inline lagometer_status lagometer_refuse(lagometer_status status, const char* why) {
  lagometer_plain_host->fail(lagometer_plain_host->self, lagometer_text(why));
  return status;
}

/* Whether the adapter can work with this host; keeps it. Call this first in lagometer_adapter(). */
static inline int lagometer_serves(const lagometer_host* host) {
  static lagometer_host whole;
  if (host == NULL || host->abi_version < LAGOMETER_ABI_VERSION || host->size < LAGOMETER_HOST_SIZE_1_0) return 0;
  lagometer_plain_host = host;
  if (host->size >= sizeof whole) return 1;
  memset(&whole, 0, sizeof whole);
  memcpy(&whole, host, host->size); /* functions it does not have are null */
  lagometer_plain_host = &whole;
  return 1;
}

/* Whether a host's struct has everything that its first version had: no host passes less. Check later fields with
 * LAGOMETER_HAS before reading or writing them. */
static inline lagometer_status lagometer_check_size(uint32_t size, size_t size_1_0) {
  return size >= size_1_0 ? LAGOMETER_OK
                          : lagometer_refuse(LAGOMETER_INVALID, "a struct without the fields of its first version");
}

/* For an adapter without options: rejects every option by name, profiles other than the two, and security. */
static inline lagometer_status lagometer_check_context(const lagometer_context_config* config) {
  char why[512];
  if (lagometer_check_size(config->size, LAGOMETER_CONTEXT_CONFIG_SIZE_1_0) < 0) return LAGOMETER_INVALID;
  snprintf(why, sizeof why, "there are no options: leave out %.*s", (int)config->options.size, config->options.data);
  if (config->options.size > 0 && !lagometer_is(config->options, "{}")) return lagometer_refuse(LAGOMETER_INVALID, why);
  if (config->profile.size > 0 && !lagometer_is(config->profile, "default") &&
      !lagometer_is(config->profile, "matched"))
    return lagometer_refuse(LAGOMETER_INVALID, "the profiles are default and matched");
  if (config->security.size > 0) return lagometer_refuse(LAGOMETER_UNSUPPORTED, "there is no security: leave it out");
  return LAGOMETER_OK;
}

/* For an adapter that only has the type bytes, without keys, up to a size. */
static inline lagometer_status lagometer_check_bytes(const lagometer_type_config* config, uint64_t bytes_max) {
  if (lagometer_check_size(config->size, LAGOMETER_TYPE_CONFIG_SIZE_1_0) < 0) return LAGOMETER_INVALID;
  if ((config->flags & ~LAGOMETER_TYPE_KEYED) != 0)
    return lagometer_refuse(LAGOMETER_INVALID, "a type with a flag that is not known");
  if (config->flags != 0 || !lagometer_is(config->name, "bytes"))
    return lagometer_refuse(LAGOMETER_UNSUPPORTED, "bytes without a key is the only type");
  if (config->max_bytes > bytes_max) return lagometer_refuse(LAGOMETER_UNSUPPORTED, "a payload above the limit");
  return LAGOMETER_OK;
}

/* What an adapter supports, for lagometer_check_endpoint: one bit per value, e.g. 1u << LAGOMETER_KEEP_LAST. */
typedef struct lagometer_plain_abilities {
  uint32_t dispatch, reliability, history, durability;
} lagometer_plain_abilities;

/* Rejects flags and policies that this header does not know, and what the adapter does not support. For a writer, use
 * lagometer_check_writer. */
static inline lagometer_status lagometer_check_endpoint(const lagometer_endpoint_config* config,
                                                        const lagometer_plain_abilities* has) {
  const uint64_t served = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY;
  const lagometer_qos* qos = config->qos;
  if (lagometer_check_size(config->size, LAGOMETER_ENDPOINT_CONFIG_SIZE_1_0) < 0 ||
      lagometer_check_size(qos->size, LAGOMETER_QOS_SIZE_1_0) < 0)
    return LAGOMETER_INVALID;
  if (config->flags != 0 || config->dispatch > LAGOMETER_DISPATCH_LISTENER ||
      qos->present >= LAGOMETER_QOS_PARTITION * 2)
    return lagometer_refuse(LAGOMETER_INVALID, "a flag, dispatch or quality of service that is not known");
  if ((qos->present & ~served) != 0)
    return lagometer_refuse(LAGOMETER_UNSUPPORTED, "of qualities of service, reliability, history and durability");
  if ((has->dispatch >> config->dispatch & 1u) == 0)
    return lagometer_refuse(LAGOMETER_UNSUPPORTED, "this dispatch is not there");
  if ((qos->present & LAGOMETER_QOS_RELIABILITY) != 0 && (has->reliability >> qos->reliability & 1u) == 0)
    return lagometer_refuse(LAGOMETER_UNSUPPORTED, "this reliability is not there");
  if ((qos->present & LAGOMETER_QOS_HISTORY) != 0 && (has->history >> qos->history & 1u) == 0)
    return lagometer_refuse(LAGOMETER_UNSUPPORTED, "this history is not there");
  if ((qos->present & LAGOMETER_QOS_DURABILITY) != 0 && (has->durability >> qos->durability & 1u) == 0)
    return lagometer_refuse(LAGOMETER_UNSUPPORTED, "this durability is not there");
  return LAGOMETER_OK;
}

/* The same for a writer. Its dispatch is always 0 (poll), which the adapter need not support. */
static inline lagometer_status lagometer_check_writer(const lagometer_endpoint_config* config,
                                                      const lagometer_plain_abilities* has) {
  lagometer_plain_abilities of_writer = *has;
  of_writer.dispatch = 1u << LAGOMETER_DISPATCH_POLL;
  return lagometer_check_endpoint(config, &of_writer);
}

/* How many messages a reader keeps with keep_last: the requested depth, or one. Keep_all has no depth. */
static inline uint32_t lagometer_depth(const lagometer_qos* qos) {
  return (qos->present & LAGOMETER_QOS_HISTORY) != 0 && qos->depth > 0 ? qos->depth : 1;
}

/* Element `index` of an array whose elements are `stride` bytes apart. */
static inline lagometer_sample* lagometer_element(lagometer_sample* samples, uint32_t stride, uint32_t index) {
  return (lagometer_sample*)((char*)samples + (size_t)stride * index);
}

/* OK, or NO_RESOURCE if there was no memory for it. */
static inline lagometer_status lagometer_made(const void* object) {
  return object != NULL ? LAGOMETER_OK : lagometer_refuse(LAGOMETER_NO_RESOURCE, "out of memory");
}

/* For the table: objects with nothing to start, count or report, which free() destroys. */
static inline lagometer_status lagometer_plain_enable_context(lagometer_context* c) { return lagometer_made(c); }
static inline lagometer_status lagometer_plain_enable_writer(lagometer_writer* w) { return lagometer_made(w); }
static inline void lagometer_plain_discard(lagometer_writer* w, lagometer_message* m) { (void)w, (void)m; }
static inline lagometer_status lagometer_plain_writer_matched(lagometer_writer* w, lagometer_matched* out) {
  out->exact = 2;
  return lagometer_made(w);
}
static inline lagometer_status lagometer_plain_reader_matched(lagometer_reader* r, lagometer_matched* out) {
  out->exact = 2;
  return lagometer_made(r);
}
static inline lagometer_status lagometer_plain_writer_counters(lagometer_writer* w, lagometer_counters* out) {
  out->present = 0;
  return lagometer_made(w);
}
static inline lagometer_status lagometer_plain_reader_counters(lagometer_reader* r, lagometer_counters* out) {
  out->present = 0;
  return lagometer_made(r);
}
static inline const void* lagometer_plain_extension(uint32_t kind, void* object, lagometer_string name) {
  (void)kind, (void)object, (void)name;
  return NULL;
}
static inline void lagometer_free_writer(lagometer_writer* w) { free(w); }
static inline void lagometer_free_type(lagometer_type* t) { free(t); }
static inline void lagometer_free_node(lagometer_node* n) { free(n); }
static inline void lagometer_free_context(lagometer_context* c) { free(c); }

#endif /* LAGOMETER_PLAIN_H */
