// SPDX-License-Identifier: Apache-2.0
// Writes messages and takes each with the next of all functions of Cyclone DDS that take; it knows nothing of
// lagometer.
//   cyclonedds_takes COUNT
#include <dds/dds.h>
#include <dds/ddsi/ddsi_serdata.h>
#include <stdlib.h>

#include "number.h"

enum { HOW_MANY = 12, SERIALISED = 6, SERIALISED_OF_INSTANCE = 7 };

/// The first is one that needs no instance: it tells which there is.
static dds_return_t taken(int how, dds_entity_t from, void** place, dds_sample_info_t* info) {
  const dds_instance_handle_t instance = info->instance_handle;
  switch (how) {
    case 0:
      return dds_take(from, place, info, 1, 1);
    case 1:
      return dds_take_mask(from, place, info, 1, 1, DDS_ANY_STATE);
    case 2:
      return dds_take_next(from, place, info);
    case 3:
      return dds_take_instance(from, place, info, 1, 1, instance);
    case 4:
      return dds_take_instance_mask(from, place, info, 1, 1, instance, DDS_ANY_STATE);
    case 5:
      return dds_take_wl(from, place, info, 1);
    case SERIALISED:
      return dds_takecdr(from, (struct ddsi_serdata**)place, 1, info, DDS_ANY_STATE);
    case SERIALISED_OF_INSTANCE:
      return dds_takecdr_instance(from, (struct ddsi_serdata**)place, 1, info, instance, DDS_ANY_STATE);
    case 8:
      return dds_take_mask_wl(from, place, info, 1, DDS_ANY_STATE);
    case 9:
      return dds_take_next_wl(from, place, info);
    case 10:
      return dds_take_instance_wl(from, place, info, 1, instance);
    default:
      return dds_take_instance_mask_wl(from, place, info, 1, instance, DDS_ANY_STATE);
  }
}

static int pass(dds_entity_t to, dds_entity_t from, uint32_t value, dds_sample_info_t* info) {
  const int how = (int)(value % HOW_MANY);
  const Number number = {value};
  Number copy = {0};
  void* place = how < 5 ? &copy : NULL;
  if (dds_write(to, &number) != 0 || taken(how, from, &place, info) != 1) return 1;
  if (how == SERIALISED || how == SERIALISED_OF_INSTANCE) {
    ddsi_serdata_unref((struct ddsi_serdata*)place);
    return 0;
  }
  const int differs = ((const Number*)place)->value != value;
  return how < 5 ? differs : differs || dds_return_loan(from, &place, 1) != 0;
}

int main(int count, char** words) {
  const int messages = count > 1 ? atoi(words[1]) : 0;
  const dds_entity_t participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
  const dds_entity_t topic = dds_create_topic(participant, &description, "rt/numbers", NULL, NULL);
  const dds_entity_t from = dds_create_reader(participant, topic, NULL, NULL);
  const dds_entity_t to = dds_create_writer(participant, topic, NULL, NULL);
  dds_sample_info_t info = {0};
  for (int at = 0; at < messages; ++at) {
    if (pass(to, from, (uint32_t)at, &info) != 0) return 1 + at;
  }
  return dds_delete(participant) != 0;
}
