// SPDX-License-Identifier: Apache-2.0
#include "endpoint_events.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "lagometer/adapter.h"

namespace lagometer::engine {
namespace {

using nlohmann::json;

const json kAbilities = {{"events", {{"writer", {"matched"}}, {"reader", {"lost", "deadline_missed", "unheard_of"}}}}};

/// A measure phase that has begun, or is over, or is still to come.
void between(Stage& stage, int64_t start_ns, int64_t stop_ns) {
  stage.start_ns = start_ns;
  stage.source_stop_ns = stop_ns;
}

TEST(EndpointEvents, ReportsWhatTheAdapterOffersOfThatSide) {
  EndpointEvents writer;
  EndpointEvents reader;
  EndpointEvents neither;
  writer.offer(kAbilities, "writer");
  reader.offer(kAbilities, "reader");
  for (const json& abilities : {json(), json::object(), json{{"events", "all"}}}) neither.offer(abilities, "reader");
  EXPECT_TRUE(writer.offered());
  EXPECT_FALSE(neither.offered());
  EXPECT_EQ(neither.describe(), json::object());
  const json nothing = {{"total", 0}, {"measured", 0}};
  EXPECT_EQ(writer.describe(), (json{{"matched", nothing}}));
  EXPECT_EQ(reader.describe(), (json{{"lost", nothing}, {"deadline_missed", nothing}}));
}

TEST(EndpointEvents, CountsApartWhatHappensInTheMeasurePhase) {
  Stage stage;
  stage.warmup_ns = 1000;
  EndpointEvents events;
  events.offer(kAbilities, "reader");
  events.happened(stage, LAGOMETER_EVENT_LOST, 2);  // in discovery
  between(stage, now_ns() + kNever_ns / 4, kNever_ns);
  events.happened(stage, LAGOMETER_EVENT_LOST, 5);  // before the measure phase
  between(stage, now_ns() - 1'000'000, kNever_ns);
  events.happened(stage, LAGOMETER_EVENT_LOST, 9);
  events.happened(stage, LAGOMETER_EVENT_LOST, 9);  // told twice
  between(stage, now_ns() - 1'000'000, now_ns() - 1);
  events.happened(stage, LAGOMETER_EVENT_LOST, 20);  // in the drain
  EXPECT_EQ(events.describe()["lost"], (json{{"total", 20}, {"measured", 4}}));
}

TEST(EndpointEvents, IgnoresWhatIsNotOffered) {
  const Stage stage;
  EndpointEvents events;
  events.offer(kAbilities, "writer");
  for (const uint32_t event : {0U, LAGOMETER_EVENT_LOST, 5U, std::numeric_limits<uint32_t>::max()})
    events.happened(stage, event, 7);
  EXPECT_EQ(events.describe(), (json{{"matched", {{"total", 0}, {"measured", 0}}}}));
}

TEST(EndpointEvents, KeepsEachWithItsTimeAndCountsOnWhereThereIsNoRoom) {
  const std::array<LaneSpecification, 1> lanes = {{{LaneKind::received_events, 0, 0, EndpointEvents::kCapacity}}};
  const Recorder recorder(0, lanes, -1);
  const Stage stage;
  EndpointEvents events;
  events.offer(kAbilities, "reader");
  events.record_into(recorder.events(0));
  {
    std::vector<std::jthread> threads;
    for (const uint32_t event : {LAGOMETER_EVENT_LOST, LAGOMETER_EVENT_DEADLINE_MISSED}) {
      threads.emplace_back([&, event] {
        for (uint64_t total = 1; total <= 200; ++total) events.happened(stage, event, total);
      });
    }
  }
  EXPECT_EQ(recorder.count(LaneKind::received_events), EndpointEvents::kCapacity);
  EXPECT_EQ(recorder.events(0).overflow(), 400 - EndpointEvents::kCapacity);
  EXPECT_EQ(events.total(LAGOMETER_EVENT_LOST), 200U);
  EXPECT_EQ(events.total(LAGOMETER_EVENT_DEADLINE_MISSED), 200U);
}

}  // namespace
}  // namespace lagometer::engine
