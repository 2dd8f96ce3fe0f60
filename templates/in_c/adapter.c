/* SPDX-License-Identifier: Apache-2.0 */
/* A template for an adapter in C that needs only the installed headers. It copies messages within a process, keeps the
 * newest, and is polled (no listener, no waitset). Build it next to its adapter.json with
 *   cc -std=c11 -O2 -shared -fPIC -fvisibility=hidden -I"$(lagometer adapters --include)" adapter.c -o libin_c.so */
#include <lagometer/plain.h>
#include <pthread.h>
#include <stdlib.h>

enum { SHOWN_MAX = 64, PLACE_BYTES = 300, PAYLOAD_BYTES_MAX = 1 << 20 };

struct lagometer_writer {
  char place[PLACE_BYTES]; /* domain, size, topic: endpoints match if it is the same */
  uint64_t max_bytes;
  uint8_t data[];
};
struct slot {
  uint64_t bytes;
  int shown; /* between take and release */
};
struct lagometer_reader {
  char place[PLACE_BYTES];
  uint64_t max_bytes, taken, come, depth; /* messages `taken` to `come` - 1 are waiting, at most `depth` of them */
  lagometer_reader* next;
  struct slot* slots; /* depth + SHOWN_MAX, used in turn; room for as many messages follows them */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects `readers` and every reader's slots */
static lagometer_reader* readers;                         /* the enabled ones */

static const lagometer_plain_abilities abilities = {1u << LAGOMETER_DISPATCH_POLL, 1u << LAGOMETER_BEST_EFFORT,
                                                    1u << LAGOMETER_KEEP_LAST, 1u << LAGOMETER_VOLATILE};

/* A context and a node are just the number of their domain; a type is just its size. */
static lagometer_status number(uint64_t value, void* out) {
  uint64_t* const made = *(uint64_t**)out = malloc(sizeof *made);
  if (made != NULL) *made = value;
  return lagometer_made(made);
}

static lagometer_status context_create(const lagometer_context_config* c, lagometer_context** out) {
  const lagometer_status status = lagometer_check_context(c);
  return status == LAGOMETER_OK ? number(c->domain, out) : status;
}
static lagometer_status node_create(lagometer_context* c, lagometer_string name, lagometer_node** out) {
  return name.size > 0 ? number(*(uint64_t*)c, out) : lagometer_refuse(LAGOMETER_INVALID, "a node needs a name");
}
static lagometer_status type_create(lagometer_context* c, const lagometer_type_config* config, lagometer_type** out) {
  const lagometer_status status =
      lagometer_made(c) < 0 ? LAGOMETER_INVALID : lagometer_check_bytes(config, PAYLOAD_BYTES_MAX);
  return status == LAGOMETER_OK ? number(config->max_bytes, out) : status;
}
static lagometer_status settle(lagometer_node* n, const lagometer_endpoint_config* c, char* place) {
  snprintf(place, PLACE_BYTES, "%u/%u/%.*s", (unsigned)*(uint64_t*)n, (unsigned)*(uint64_t*)c->type, (int)c->topic.size,
           c->topic.data);
  return lagometer_check_endpoint(c, &abilities);
}
static lagometer_status writer_create(lagometer_node* n, const lagometer_endpoint_config* c, lagometer_writer** out) {
  const uint64_t bytes = *(uint64_t*)c->type;
  lagometer_writer* w = calloc(1, sizeof *w + bytes);
  const lagometer_status settled = w == NULL ? lagometer_made(w) : settle(n, c, w->place);
  if (settled != LAGOMETER_OK) return free(w), settled;
  w->max_bytes = bytes, *out = w;
  return settled;
}
static lagometer_status reader_create(lagometer_node* n, const lagometer_endpoint_config* c, lagometer_reader** out) {
  const uint64_t depth = lagometer_depth(c->qos), bytes = *(uint64_t*)c->type;
  lagometer_reader* r = calloc(1, sizeof *r + (depth + SHOWN_MAX) * (sizeof(struct slot) + bytes));
  const lagometer_status settled = r == NULL ? lagometer_made(r) : settle(n, c, r->place);
  if (settled != LAGOMETER_OK) return free(r), settled;
  r->max_bytes = bytes, r->depth = depth, r->slots = (struct slot*)(r + 1), *out = r;
  return settled;
}
static lagometer_status reader_enable(lagometer_reader* r) {
  pthread_mutex_lock(&mutex);
  r->next = readers, readers = r;
  pthread_mutex_unlock(&mutex);
  return LAGOMETER_OK;
}
static void reader_destroy(lagometer_reader* r) {
  pthread_mutex_lock(&mutex);
  lagometer_reader** at = &readers;
  while (*at != NULL && *at != r) at = &(*at)->next;
  if (*at != NULL) *at = r->next;
  pthread_mutex_unlock(&mutex);
  free(r);
}
static lagometer_status borrow(lagometer_writer* w, uint64_t bytes, lagometer_message* m) {
  if (bytes > w->max_bytes) return lagometer_refuse(LAGOMETER_INVALID, "a message larger than its type");
  m->origin = LAGOMETER_ORIGIN_COPIED, m->region_count = 1;
  m->regions[0] = (lagometer_region){w->data, bytes};
  return LAGOMETER_OK;
}
static uint8_t* room(lagometer_reader* r, struct slot* slot) {
  return (uint8_t*)(r->slots + r->depth + SHOWN_MAX) + (uint64_t)(slot - r->slots) * r->max_bytes;
}
static lagometer_status commit(lagometer_writer* w, lagometer_message* m) {
  pthread_mutex_lock(&mutex);
  for (lagometer_reader* r = readers; r != NULL; r = r->next) {
    struct slot* const slot = &r->slots[r->come % (r->depth + SHOWN_MAX)];
    if (strcmp(r->place, w->place) != 0 || slot->shown) continue; /* the slot is still shown: the message is lost */
    memcpy(room(r, slot), w->data, slot->bytes = m->regions[0].size);
    if (++r->come - r->taken > r->depth) ++r->taken;
  }
  pthread_mutex_unlock(&mutex);
  return LAGOMETER_OK;
}
static lagometer_status take(lagometer_reader* r, lagometer_sample* s, uint32_t stride, uint32_t max, uint32_t* taken) {
  pthread_mutex_lock(&mutex);
  for (*taken = 0; *taken < max && r->taken < r->come; ++*taken, ++r->taken) {
    struct slot* const slot = &r->slots[r->taken % (r->depth + SHOWN_MAX)];
    lagometer_sample* const sample = lagometer_element(s, stride, *taken);
    sample->flags = 0, sample->region_count = 1, sample->signalled_ns = 0;
    sample->regions[0] = (lagometer_region){room(r, slot), slot->bytes};
    sample->adapter_data = slot, slot->shown = 1;
  }
  pthread_mutex_unlock(&mutex);
  return LAGOMETER_OK;
}
static void release(lagometer_reader* r, lagometer_sample* samples, uint32_t stride, uint32_t count) {
  pthread_mutex_lock(&mutex);
  for (uint32_t i = 0; i < count && r != NULL; ++i)
    ((struct slot*)lagometer_element(samples, stride, i)->adapter_data)->shown = 0;
  pthread_mutex_unlock(&mutex);
}
static lagometer_status probe(lagometer_string options, lagometer_sink sink, void* user) {
  return sink(user, lagometer_text("{\"version\":\"1\",\"abilities\":{},\"limits\":{}}")), lagometer_made(options.data);
}
static lagometer_status describe(uint32_t kind, const void* object, lagometer_sink sink, void* user) {
  sink(user, lagometer_text("{\"settings\":{},\"paste\":[],\"transport\":{\"within_process\":[\"process\"]}}"));
  return kind == LAGOMETER_OBJECT_ADAPTER ? LAGOMETER_OK : lagometer_made(object);
}
/* Required: all but the waitset's five functions at the end, which are null without the dispatch "waitset". Functions
 * with nothing to do come from lagometer/plain.h; their names start with lagometer_plain_ or lagometer_free_. */
/* clang-format off */
static const lagometer_adapter_table table = {
    .size = sizeof table, .abi_version = LAGOMETER_ABI_VERSION, .name = {"in_c", 4}, .probe = probe,
    .context_create = context_create, .context_enable = lagometer_plain_enable_context, .node_create = node_create,
    .type_create = type_create, .writer_create = writer_create, .writer_enable = lagometer_plain_enable_writer,
    .reader_create = reader_create, .reader_enable = reader_enable, .reader_destroy = reader_destroy,
    .writer_destroy = lagometer_free_writer, .type_destroy = lagometer_free_type, .node_destroy = lagometer_free_node,
    .context_destroy = lagometer_free_context, .borrow = borrow, .commit = commit, .discard = lagometer_plain_discard,
    .take = take, .release = release, .writer_matched = lagometer_plain_writer_matched,
    .reader_matched = lagometer_plain_reader_matched, .writer_counters = lagometer_plain_writer_counters,
    .reader_counters = lagometer_plain_reader_counters, .describe = describe, .extension = lagometer_plain_extension};
/* clang-format on */
const lagometer_adapter_table* lagometer_adapter(const lagometer_host* given) {
  return lagometer_serves(given) ? &table : NULL;
}
