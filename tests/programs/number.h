// SPDX-License-Identifier: Apache-2.0
// The type of the messages of these programs, as the compiler of IDL would describe it to Cyclone DDS: one number.
#pragma once

#include <dds/dds.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t value;
} Number;

static const uint32_t operations[] = {DDS_OP_ADR | DDS_OP_TYPE_4BY, offsetof(Number, value), DDS_OP_RTS};
static const dds_topic_descriptor_t description = {.m_size = sizeof(Number),
                                                   .m_align = 4,
                                                   .m_flagset = DDS_TOPIC_FIXED_SIZE,
                                                   .m_typename = "Number",
                                                   .m_nops = 2,
                                                   .m_ops = operations,
                                                   .m_meta = ""};
