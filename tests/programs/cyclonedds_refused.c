// SPDX-License-Identifier: Apache-2.0
// Writes each message twice to a reader that has room for one: Cyclone DDS refuses the second. It knows nothing of
// lagometer.
//   cyclonedds_refused COUNT
#include <dds/dds.h>
#include <stdlib.h>

#include "number.h"

static int pass(dds_entity_t to, dds_entity_t from, uint32_t value) {
  const Number number = {value};
  Number copy = {0};
  void* place = &copy;
  dds_sample_info_t info;
  if (dds_write(to, &number) != 0 || dds_write(to, &number) != DDS_RETCODE_TIMEOUT) return 1;
  return dds_take(from, &place, &info, 1, 1) != 1 || copy.value != value || dds_take(from, &place, &info, 1, 1) != 0;
}

int main(int count, char** words) {
  const int messages = count > 1 ? atoi(words[1]) : 0;
  const dds_entity_t participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
  const dds_entity_t topic = dds_create_topic(participant, &description, "rt/numbers", NULL, NULL);
  dds_qos_t* const qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_MSECS(2));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, DDS_LENGTH_UNLIMITED);
  const dds_entity_t to = dds_create_writer(participant, topic, qos, NULL);
  dds_qset_resource_limits(qos, 1, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  const dds_entity_t from = dds_create_reader(participant, topic, qos, NULL);
  dds_delete_qos(qos);
  for (int at = 0; at < messages; ++at) {
    if (pass(to, from, (uint32_t)at) != 0) return 1 + at;
  }
  return dds_delete(participant) != 0;
}
