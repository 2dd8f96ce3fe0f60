/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of zenohc_stub.c: what the library passes by value has the size that it has there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint8_t* data;
  size_t size;
} z_bytes;

typedef struct {
  const char* key;
  z_bytes payload;
} z_sample;

typedef struct {
  const z_bytes* bytes;
  size_t at;
  size_t unused;
} z_bytes_reader_t;

typedef struct {
  const char* data;
  size_t size;
  size_t unused[2];
} z_view_string_t;

typedef struct {
  void* _context;
  void (*_call)(z_sample* sample, void* context);
  void (*_drop)(void* context);
} z_owned_closure_sample_t;

void stub_open(void);
void stub_close(void);
int8_t z_put(const void* session, const char* key, z_bytes* payload, void* options);
int8_t z_publisher_put(const char* publisher, z_bytes* payload, void* options);
int8_t z_declare_subscriber(const void* session, void* subscriber, const char* key, z_owned_closure_sample_t* closure,
                            void* options);
