// SPDX-License-Identifier: Apache-2.0
// A bridge as a user of Cyclone DDS writes one; it knows nothing of lagometer. What it writes itself it takes in
// serialised form and hands on as it is, with the time that it bears, as ROS 2 does with serialised messages.
//   cyclonedds_relay COUNT
#include <dds/dds.h>
#include <dds/ddsi/ddsi_serdata.h>
#include <stdlib.h>

#include "number.h"

static int relay(dds_entity_t numbers, dds_entity_t seen, dds_entity_t copies, dds_entity_t found, uint32_t value) {
  const Number number = {value};
  struct ddsi_serdata* serialised;
  dds_sample_info_t info;
  if (dds_write(numbers, &number) != 0 || dds_takecdr(seen, &serialised, 1, &info, DDS_ANY_STATE) != 1) return 1;
  dds_sleepfor(DDS_MSECS(1));  // what it bears is older than its forwarding
  if (dds_forwardcdr(copies, serialised) != 0) return 1;
  Number copy = {0};
  void* place = &copy;
  return dds_take(found, &place, &info, 1, 1) != 1 || copy.value != value;
}

int main(int count, char** words) {
  const int messages = count > 1 ? atoi(words[1]) : 0;
  const dds_entity_t participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
  const dds_entity_t first = dds_create_topic(participant, &description, "rt/numbers", NULL, NULL);
  const dds_entity_t second = dds_create_topic(participant, &description, "rt/copies", NULL, NULL);
  const dds_entity_t seen = dds_create_reader(participant, first, NULL, NULL);
  const dds_entity_t found = dds_create_reader(participant, second, NULL, NULL);
  const dds_entity_t numbers = dds_create_writer(participant, first, NULL, NULL);
  const dds_entity_t copies = dds_create_writer(participant, second, NULL, NULL);
  for (int at = 0; at < messages; ++at) {
    if (relay(numbers, seen, copies, found, (uint32_t)at) != 0) return 1;
  }
  return dds_delete(participant) != 0;
}
