// SPDX-License-Identifier: Apache-2.0
// The functions of later versions of Fast DDS 2 that create writers and readers; the last argument is a
// std::shared_ptr, of which the caller passes the address.
#pragma once

#define CREATE_WRITER                                                       \
  "_ZN8eprosima7fastdds3dds9Publisher17create_datawriterEPNS1_5TopicERKNS1" \
  "_13DataWriterQosEPNS1_18DataWriterListenerERKNS1_10StatusMaskE"
#define CREATE_READER                                                                  \
  "_ZN8eprosima7fastdds3dds10Subscriber17create_datareaderEPNS1_16TopicDescriptionERK" \
  "NS1_13DataReaderQosEPNS1_18DataReaderListenerERKNS1_10StatusMaskE"
#define POOL "St10shared_ptrINS_8fastrtps4rtps12IPayloadPoolEE"

void* create_pooled_writer(void* publisher, void* topic, const void* qos, void* listener, const void* mask,
                           void* pool) __asm__(CREATE_WRITER POOL);
void* create_pooled_reader(void* subscriber, void* topic, const void* qos, void* listener, const void* mask,
                           void* pool) __asm__(CREATE_READER POOL);
