// SPDX-License-Identifier: Apache-2.0
// The kernel's description of a tracepoint is read as it is, on whatever kernel.
#include "tracepoints.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace lagometer::scheduler {
namespace {

constexpr const char* kFormat = R"(name: sched_waking
ID: 375
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char comm[16];	offset:8;	size:16;	signed:0;
	field:__data_loc char[] name;	offset:24;	size:4;	signed:0;
	field:pid_t pid;	offset:28;	size:4;	signed:1;

print fmt: "comm=%s pid=%d", REC->comm, REC->pid
)";

TEST(Tracepoint, HasItsNumberAndItsFields) {
  const Tracepoint found = parse_format(kFormat, {"pid", "comm", "name", "common_pid"});
  EXPECT_EQ(found.number, 375);
  EXPECT_EQ(found.fields.at("pid").offset, 28U);
  EXPECT_EQ(found.fields.at("comm").bytes, 16U);
  EXPECT_EQ(found.fields.at("name").offset, 24U);
  EXPECT_EQ(found.fields.size(), 5U);
}

TEST(Tracepoint, WithoutAFieldThatIsNeededIsRefused) {
  EXPECT_THROW(parse_format(kFormat, {"target_cpu"}), std::runtime_error);
  EXPECT_THROW(parse_format("", {}), std::runtime_error);
  EXPECT_THROW(parse_format("ID: 7\n\tfield:int far;\toffset:5000;\tsize:4;\tsigned:1;\n", {}), std::runtime_error);
}

}  // namespace
}  // namespace lagometer::scheduler
