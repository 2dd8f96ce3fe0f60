// SPDX-License-Identifier: Apache-2.0
// Asks and answers on one topic, in two partitions; an answer keeps the time of what it answers, as in the vendor's own
// example of a round trip. It knows nothing of lagometer.
//   cyclonedds_echo ask COUNT | cyclonedds_echo answer COUNT
#include <dds/dds.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

static dds_entity_t in_partition(dds_entity_t participant, int writes, const char* name) {
  dds_qos_t* const qos = dds_create_qos();
  dds_qset_partition1(qos, name);
  const dds_entity_t group =
      writes ? dds_create_publisher(participant, qos, NULL) : dds_create_subscriber(participant, qos, NULL);
  dds_delete_qos(qos);
  return group;
}

/// Waits for the next message; returns whether one came within five seconds.
static int next(dds_entity_t from, Number* number, dds_sample_info_t* info) {
  void* place = number;
  for (int waits = 0; waits < 5000; ++waits) {
    if (dds_take(from, &place, info, 1, 1) == 1 && info->valid_data) return 1;
    dds_sleepfor(DDS_MSECS(1));
  }
  return 0;
}

static void wait_until_matched(dds_entity_t from, dds_entity_t to) {
  dds_publication_matched_status_t readers = {0};
  dds_subscription_matched_status_t writers = {0};
  for (int waits = 0; waits < 5000 && (readers.current_count == 0 || writers.current_count == 0); ++waits) {
    dds_get_publication_matched_status(to, &readers);
    dds_get_subscription_matched_status(from, &writers);
    dds_sleepfor(DDS_MSECS(1));
  }
}

int main(int count, char** words) {
  const int asks = count > 1 && strcmp(words[1], "ask") == 0;
  const int messages = count > 2 ? atoi(words[2]) : 0;
  const dds_entity_t participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
  dds_qos_t* const qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(5));
  const dds_entity_t topic = dds_create_topic(participant, &description, "rt/numbers", qos, NULL);
  dds_delete_qos(qos);
  const char* const names[] = {"asked", "answered"};
  const dds_entity_t from = dds_create_reader(in_partition(participant, 0, names[asks]), topic, NULL, NULL);
  const dds_entity_t to = dds_create_writer(in_partition(participant, 1, names[!asks]), topic, NULL, NULL);
  wait_until_matched(from, to);
  for (int at = 0; at < messages; ++at) {
    Number number = {(uint32_t)at};
    dds_sample_info_t info;
    if (asks && dds_write(to, &number) != 0) return 1;
    if (!next(from, &number, &info)) return 2;
    if (!asks && dds_write_ts(to, &number, info.source_timestamp) != 0) return 3;
  }
  if (!asks) dds_sleepfor(DDS_MSECS(200));
  return dds_delete(participant) != 0;
}
