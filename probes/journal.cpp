// SPDX-License-Identifier: Apache-2.0
#include "journal.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace lagometer::probes {
namespace {

constexpr uint64_t kRecordBytes = 64;
constexpr uint32_t kRecordsPerChunk = kChunkBytes / kRecordBytes - 1;

std::atomic<Header*> file{nullptr};  // null: nothing is written down

/// What a thread writes to. In the static part of the thread's storage: reading it allocates nothing.
struct Place {
  ChunkHeader* chunk;
  uint32_t used;
  uint32_t thread;
};
thread_local Place place __attribute__((tls_model("initial-exec")));

ChunkHeader* chunk_at(Header* header, uint32_t index) noexcept {
  auto* const first = reinterpret_cast<uint8_t*>(header) + kHeaderBytes;
  return reinterpret_cast<ChunkHeader*>(first + uint64_t{index} * kChunkBytes);
}

/// Room for so many records side by side; null where there is none. A signal handler that writes between the two lines
/// that matter gets room of its own.
uint8_t* claim(Header* header, uint32_t count) noexcept {
  Place& own = place;
  if (own.chunk == nullptr || own.used + count > kRecordsPerChunk) {
    if (own.thread == 0) own.thread = static_cast<uint32_t>(syscall(SYS_gettid));
    const uint32_t index = std::atomic_ref(header->chunks_in_use).fetch_add(1, std::memory_order_relaxed);
    if (index >= header->chunks) {
      std::atomic_ref(header->chunks_in_use).fetch_sub(1, std::memory_order_relaxed);
      std::atomic_ref(header->overflow).fetch_add(count, std::memory_order_relaxed);
      return nullptr;
    }
    own.chunk = chunk_at(header, index);
    own.used = 0;
    own.chunk->thread = own.thread;
    prctl(PR_GET_NAME, own.chunk->name.data());
  }
  const uint32_t first = own.used;
  own.used = first + count;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return reinterpret_cast<uint8_t*>(own.chunk) + (uint64_t{first} + 1) * kRecordBytes;
}

void stop_in_child() { file.store(nullptr, std::memory_order_relaxed); }

uint64_t bytes_wanted() noexcept {
  const char* const text = std::getenv("LAGOMETER_PROBE_BYTES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}

/// Makes the file before the program's first instruction. A program that this one starts finds it made, and is left
/// alone; so is one whose file can't be made: whoever asked for it misses it.
__attribute__((constructor)) void start() {
  const char* const path = std::getenv("LAGOMETER_PROBE_FILE");
  const uint64_t bytes = bytes_wanted();
  if (path == nullptr || bytes < kHeaderBytes + kChunkBytes) return;
  const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  void* memory = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  static_cast<void>(syscall(SYS_close, descriptor));
  if (memory == MAP_FAILED) return;
  auto* const header = static_cast<Header*>(memory);
  *header = {.magic = kMagic,
             .version = kVersion,
             .chunk_bytes = kChunkBytes,
             .chunks = static_cast<uint32_t>((bytes - kHeaderBytes) / kChunkBytes),
             .chunks_in_use = 0,
             .overflow = 0,
             .process = static_cast<uint32_t>(getpid()),
             .zero = 0};
  if (pthread_atfork(nullptr, nullptr, stop_in_child) != 0) return;
  file.store(header, std::memory_order_release);
}

}  // namespace

bool is_on() noexcept { return file.load(std::memory_order_relaxed) != nullptr; }

Moment now() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return {.ns = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec, .cpu = static_cast<uint16_t>(sched_getcpu())};
}

void Entered::write(Call call, CallRecord record, std::span<const KeyRecord> keys) const noexcept {
  Header* const header = file.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const auto count = static_cast<uint32_t>(1 + keys.size());
  uint8_t* const room = claim(header, count);
  if (room == nullptr) return;
  ChunkHeader* const chunk = place.chunk;
  record.begin_ns = begin_.ns;
  record.end_ns = end_.ns;
  record.call = static_cast<uint16_t>(call);
  record.cpu_begin = begin_.cpu;
  record.cpu_end = end_.cpu;
  record.keys = static_cast<uint16_t>(keys.size());
  *reinterpret_cast<CallRecord*>(room) = record;
  auto* to = reinterpret_cast<KeyRecord*>(room) + 1;
  for (const KeyRecord& key : keys) *to++ = key;
  std::atomic_ref(chunk->count).fetch_add(count, std::memory_order_release);
}

}  // namespace lagometer::probes
