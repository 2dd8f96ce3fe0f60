// SPDX-License-Identifier: Apache-2.0
// When Cyclone DDS 0.10 serialises and deserialises a message.
//
// It does so in functions that tables of operations name, one table for each encoding, and it finds the tables by their
// symbols. Here are tables of the same names. For a library that was loaded with an adapter, the dynamic linker looks
// into the adapter first, so the library uses these. They call its own functions, so everything that an application
// pays for is still paid. If another part of the process loaded the library earlier, it keeps its own tables, and
// nothing is noted.
#include <dds/dds.h>
#include <dds/ddsi/ddsi_serdata.h>
#include <dlfcn.h>

#include <array>
#include <cstddef>

#include "layer_notes.hpp"

#define LAGOMETER_INSTEAD_OF_THE_LIBRARYS __attribute__((visibility("default")))

extern "C" {
LAGOMETER_INSTEAD_OF_THE_LIBRARYS ddsi_serdata_ops ddsi_serdata_ops_cdr{};
LAGOMETER_INSTEAD_OF_THE_LIBRARYS ddsi_serdata_ops ddsi_serdata_ops_cdr_nokey{};
LAGOMETER_INSTEAD_OF_THE_LIBRARYS ddsi_serdata_ops ddsi_serdata_ops_xcdr2{};
LAGOMETER_INSTEAD_OF_THE_LIBRARYS ddsi_serdata_ops ddsi_serdata_ops_xcdr2_nokey{};
}

namespace lagometer::cyclonedds {

namespace {

constexpr size_t kTables = 4;
std::array<const ddsi_serdata_ops*, kTables> librarys{};

template <size_t kTable>
ddsi_serdata* serialise(const ddsi_sertype* type, ddsi_serdata_kind kind, const void* sample) {
  const LayerWork work(LAGOMETER_LAYER_SERIALISE, sample);
  return librarys[kTable]->from_sample(type, kind, sample);
}

template <size_t kTable>
bool deserialise(const ddsi_serdata* data, void* sample, void** buffer, void* buffer_end) {
  const LayerWork work(LAGOMETER_LAYER_DESERIALISE, sample);
  return librarys[kTable]->to_sample(data, sample, buffer, buffer_end);
}

template <size_t kTable>
void fill(void* library, const char* name, ddsi_serdata_ops& table) noexcept {
  const auto* const found = static_cast<const ddsi_serdata_ops*>(dlsym(library, name));
  if (found == nullptr || found == &table) return;
  librarys[kTable] = found;
  table = *found;
  table.from_sample = &serialise<kTable>;
  table.to_sample = &deserialise<kTable>;
}

// When the adapter is loaded, so before anything uses a table.
[[gnu::constructor]] void fill_all() noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&dds_create_participant), &info) == 0) return;
  void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  fill<0>(library, "ddsi_serdata_ops_cdr", ddsi_serdata_ops_cdr);
  fill<1>(library, "ddsi_serdata_ops_cdr_nokey", ddsi_serdata_ops_cdr_nokey);
  fill<2>(library, "ddsi_serdata_ops_xcdr2", ddsi_serdata_ops_xcdr2);
  fill<3>(library, "ddsi_serdata_ops_xcdr2_nokey", ddsi_serdata_ops_xcdr2_nokey);
  dlclose(library);  // the adapter holds it, too
}

}  // namespace

}  // namespace lagometer::cyclonedds
