# SPDX-License-Identifier: Apache-2.0
# lagometer_add_cyclonedds_adapter(NAME LIBRARY [SOURCES …] [EXPORTS map]): the adapter for one series of Cyclone DDS, in
# the calling folder, which has its own series.cpp and may have further sources and an own list of exported symbols.
include_guard()

set(LAGOMETER_CYCLONEDDS_COMMON ${CMAKE_CURRENT_LIST_DIR})

function(lagometer_add_cyclonedds_adapter name library)
  cmake_parse_arguments(arg "" "EXPORTS" "SOURCES" ${ARGN})
  set(sources cyclonedds.cpp context.cpp endpoints.cpp messages.cpp settings.cpp)
  list(TRANSFORM sources PREPEND ${LAGOMETER_CYCLONEDDS_COMMON}/)
  lagometer_add_adapter(${name}
    SOURCES ${sources} series.cpp ${arg_SOURCES}
    EXPORTS ${arg_EXPORTS}
    LIBRARIES lagometer_adapter_common ${library} nlohmann_json::nlohmann_json)
  target_include_directories(lagometer_${name} PRIVATE ${LAGOMETER_CYCLONEDDS_COMMON})
  target_compile_definitions(lagometer_${name} PRIVATE LAGOMETER_ADAPTER_NAME="${name}")
endfunction()
