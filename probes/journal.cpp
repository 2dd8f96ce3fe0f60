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

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace lagometer::probes {
namespace {

constexpr uint64_t kRecordBytes = 64;
constexpr uint32_t kRecordsPerChunk = kChunkBytes / kRecordBytes - 1;

std::atomic<Header*> file{nullptr};  // null: nothing is recorded
std::atomic<int64_t> turn_ns{0};     // how long it rests, and then records, in turns; 0: it never rests
std::atomic<bool> of_programs{false};

/// Where a thread writes to. It is in static thread-local storage: reading it allocates nothing.
struct Place {
  ChunkHeader* chunk;
  uint32_t used;
  uint32_t thread;
  uint16_t last;  // the call of the last record if it stands alone; otherwise 0
};
thread_local Place place __attribute__((tls_model("initial-exec")));

ChunkHeader* chunk_at(Header* header, uint32_t index) noexcept {
  auto* const first = reinterpret_cast<uint8_t*>(header) + kHeaderBytes;
  return reinterpret_cast<ChunkHeader*>(first + uint64_t{index} * kChunkBytes);
}

/// Contiguous room for this many records; null if there is none. A signal handler that interrupts between the two
/// critical lines gets its own room.
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
  // A thread may get its name after its first calls.
  for (const uint32_t again : {32U, 128U})
    if (first < again && own.used >= again) prctl(PR_GET_NAME, own.chunk->name.data());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return reinterpret_cast<uint8_t*>(own.chunk) + (uint64_t{first} + 1) * kRecordBytes;
}

/// The record to replace because nothing came of it: a spinning executor waits repeatedly for something it may not take
/// yet. Null: there is none.
CallRecord* replaced(Call call) noexcept {
  const Place& own = place;
  if (call != Call::api_wait || own.last != static_cast<uint16_t>(call) || own.chunk == nullptr) return nullptr;
  return reinterpret_cast<CallRecord*>(own.chunk) + own.used;  // the chunk's head is as long as a record
}

uint64_t number_in(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}
uint64_t bytes_wanted() noexcept { return number_in("LAGOMETER_PROBE_BYTES"); }

/// Not by the C library's functions: some are intercepted here, and a cancelled thread would end in others.
int opened(const char* path, int flags) noexcept {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600));
}

int make_file(const char* path) noexcept { return opened(path, O_RDWR | O_CREAT | O_EXCL); }

/// Each program has its own file in a folder, named after its process and how many programs this process has run.
int make_file_in(const char* folder) noexcept {
  constexpr int kProgramsMax = 100;
  std::array<char, 4096> path;
  for (int number = 0; number < kProgramsMax; ++number) {
    const int size = std::snprintf(path.data(), path.size(), "%s/%d.%d", folder, static_cast<int>(getpid()), number);
    if (size < 0 || static_cast<size_t>(size) >= path.size()) return -1;
    const int descriptor = make_file(path.data());
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

/// The program's name and arguments, as many of them as fit.
uint32_t note_program(Header* header) noexcept {
  const int descriptor = opened("/proc/self/cmdline", O_RDONLY);
  if (descriptor < 0) return 0;
  char* const room = reinterpret_cast<char*>(header) + kProgramAt;
  const long size = syscall(SYS_read, descriptor, room, kHeaderBytes - kProgramAt);
  static_cast<void>(syscall(SYS_close, descriptor));
  return size > 0 ? static_cast<uint32_t>(size) : 0;
}

void begin(int descriptor, uint64_t bytes, int populate) noexcept {
  if (descriptor < 0) return;
  void* memory = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, descriptor, 0);
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
             .program_bytes = note_program(header)};
  file.store(header, std::memory_order_release);
}

void begin_in_folder() noexcept {
  const char* const folder = std::getenv("LAGOMETER_PROBE_FOLDER");
  const uint64_t bytes = bytes_wanted();
  if (folder == nullptr || bytes < kHeaderBytes + kChunkBytes) return;
  of_programs.store(true, std::memory_order_relaxed);
  begin(make_file_in(folder), bytes, 0);  // takes no memory yet: nobody knows how much will be needed
}

/// The file belongs to the parent. A program that is not ours continues with its own file.
void after_fork() noexcept {
  file.store(nullptr, std::memory_order_relaxed);
  place = {};
  if (of_programs.load(std::memory_order_relaxed)) begin_in_folder();
}

/// Creates the file before the program's first instruction. A program started by a worker is not recorded: the file
/// already exists. Neither is a program whose file can't be created: the program that requested it will notice that it
/// is missing.
__attribute__((constructor)) void start() {
  if (pthread_atfork(nullptr, nullptr, after_fork) != 0) return;
  turn_ns.store(static_cast<int64_t>(number_in("LAGOMETER_PROBE_TURN_NS")), std::memory_order_relaxed);
  const char* const path = std::getenv("LAGOMETER_PROBE_FILE");
  if (path == nullptr)
    begin_in_folder();
  else if (const uint64_t bytes = bytes_wanted(); bytes >= kHeaderBytes + kChunkBytes)
    begin(make_file(path), bytes, MAP_POPULATE);
}

}  // namespace

bool is_on() noexcept {
  if (file.load(std::memory_order_relaxed) == nullptr) return false;
  const int64_t turn = turn_ns.load(std::memory_order_relaxed);
  if (turn == 0) return true;
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);  // costs a few nanoseconds, in both turns
  return (time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec) / turn % 2 != 0;
}
bool follows_programs() noexcept { return of_programs.load(std::memory_order_relaxed); }

Moment now() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return {.ns = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec, .cpu = static_cast<uint16_t>(sched_getcpu())};
}

void Entered::write(Call call, CallRecord record, std::span<const KeyRecord> keys) const noexcept {
  Header* const header = file.load(std::memory_order_acquire);
  if (header == nullptr) return;
  record.begin_ns = begin_.ns;
  record.end_ns = end_.ns;
  record.call = static_cast<uint16_t>(call);
  record.cpu_begin = begin_.cpu;
  record.cpu_end = end_.cpu;
  record.keys = static_cast<uint16_t>(keys.size());
  if (CallRecord* const before = replaced(call)) {
    *before = record;
    return;
  }
  const auto count = static_cast<uint32_t>(1 + keys.size());
  uint8_t* const room = claim(header, count);
  place.last = room != nullptr && keys.empty() ? record.call : uint16_t{0};
  if (room == nullptr) return;
  ChunkHeader* const chunk = place.chunk;
  *reinterpret_cast<CallRecord*>(room) = record;
  auto* to = reinterpret_cast<KeyRecord*>(room) + 1;
  for (const KeyRecord& key : keys) *to++ = key;
  std::atomic_ref(chunk->count).fetch_add(count, std::memory_order_release);
}

}  // namespace lagometer::probes
