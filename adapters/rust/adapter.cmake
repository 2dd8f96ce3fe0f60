# SPDX-License-Identifier: Apache-2.0
# Adapters written in Rust: one crate each in the workspace adapters/Cargo.toml, built by one run of cargo into one
# folder for all, whatever the preset. They take minutes and need the package registry once, so they are only built on
# request.

set(LAGOMETER_CARGO_TARGET ${PROJECT_SOURCE_DIR}/build/cargo CACHE PATH "Where cargo builds the adapters in Rust")
set(LAGOMETER_RUST_PROFILE release CACHE STRING
  "cargo's profile for the adapters in Rust: release, or ci, which is quick to build and never to be measured")
set(LAGOMETER_RUST_VERSION 1.89) # rust-version in adapters/Cargo.toml
set(LAGOMETER_RUST_HOW "Debian 12: apt install cargo-web rustc-web; elsewhere a toolchain of your own")

if(LAGOMETER_RUST_ADAPTERS OR LAGOMETER_BRIDGES)
  # The first that is new enough; otherwise the last, so that its version can be reported.
  find_program(LAGOMETER_CARGO_OWN cargo PATHS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin NO_DEFAULT_PATH)
  find_program(LAGOMETER_CARGO_PATH cargo)
  foreach(candidate IN ITEMS ${LAGOMETER_CARGO_OWN} ${LAGOMETER_CARGO_PATH})
    if(candidate AND (NOT LAGOMETER_CARGO OR LAGOMETER_CARGO_VERSION VERSION_LESS LAGOMETER_RUST_VERSION))
      execute_process(COMMAND ${candidate} --version OUTPUT_VARIABLE said ERROR_QUIET)
      string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LAGOMETER_CARGO_VERSION "${said}")
      set(LAGOMETER_CARGO ${candidate})
    endif()
  endforeach()
endif()

# lagometer_add_rust_adapter(NAME [PROGRAMS program...]): the crate lagometer-NAME in the calling folder.
function(lagometer_add_rust_adapter name)
  cmake_parse_arguments(arg "" "" "PROGRAMS" ${ARGN})
  if(NOT LAGOMETER_RUST_ADAPTERS)
    lagometer_skip_adapter(${name} "adapters in Rust are built on request alone: make bench ADAPTERS=all, or CMake with -DLAGOMETER_RUST_ADAPTERS=ON; needs cargo >= ${LAGOMETER_RUST_VERSION} (${LAGOMETER_RUST_HOW})")
    return()
  endif()
  if(NOT LAGOMETER_CARGO)
    lagometer_skip_adapter(${name} "cargo was not found, ${LAGOMETER_RUST_VERSION} or newer is needed (${LAGOMETER_RUST_HOW})")
    return()
  endif()
  if(LAGOMETER_CARGO_VERSION VERSION_LESS LAGOMETER_RUST_VERSION)
    lagometer_skip_adapter(${name} "cargo ${LAGOMETER_CARGO_VERSION} is too old, ${LAGOMETER_RUST_VERSION} or newer is needed (${LAGOMETER_RUST_HOW})")
    return()
  endif()

  set(folder ${LAGOMETER_ADAPTERS_DIR}/${name})
  set(built ${folder}/liblagometer_${name}.so)
  configure_file(adapter.json ${folder}/adapter.json COPYONLY)
  lagometer_add_manual(${name})
  if(EXISTS ${built}) # perhaps the adapters in Rust were not wanted in between
    file(REMOVE ${folder}/missing.txt)
  endif()
  set_property(GLOBAL APPEND PROPERTY lagometer_rust_adapters ${name})
  set_property(GLOBAL PROPERTY lagometer_rust_programs_${name} "${arg_PROGRAMS}")
  list(TRANSFORM arg_PROGRAMS PREPEND ${folder}/ OUTPUT_VARIABLE programs)
  install(FILES ${folder}/adapter.json DESTINATION ${LAGOMETER_LIBEXEC}/adapters/${name})
  install(PROGRAMS ${built} ${programs} DESTINATION ${LAGOMETER_LIBEXEC}/adapters/${name} OPTIONAL)
  install(FILES ${folder}/missing.txt DESTINATION ${LAGOMETER_LIBEXEC}/adapters/${name} OPTIONAL)
endfunction()

# Builds all added adapters together: their dependencies are compiled once for all of them.
function(lagometer_build_rust_adapters)
  get_property(names GLOBAL PROPERTY lagometer_rust_adapters)
  if(NOT names)
    return()
  endif()
  set(workspace ${PROJECT_SOURCE_DIR}/adapters)
  list(JOIN names "," joined)
  set(options -Dnames=${joined})
  foreach(name IN LISTS names)
    get_property(programs GLOBAL PROPERTY lagometer_rust_programs_${name})
    list(JOIN programs "," joined)
    list(APPEND options -Dprograms_${name}=${joined})
    list(APPEND inputs ${workspace}/${name}/adapter.json)
  endforeach()
  # Cargo itself tracks which crate depends on which file.
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${workspace}/*.rs ${workspace}/Cargo.toml)
  set(stamp ${CMAKE_BINARY_DIR}/rust_adapters.stamp)
  # The stamp is written if all were built; a failure is noted in missing.txt and retried next time.
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} ${options} -Dcargo=${LAGOMETER_CARGO} -Dfolder=${LAGOMETER_ADAPTERS_DIR}
            -Dworkspace=${workspace} -Dtarget=${LAGOMETER_CARGO_TARGET}
            -Dprofile=${LAGOMETER_RUST_PROFILE} -Dstamp=${stamp} -P ${workspace}/rust/build.cmake
    DEPENDS ${sources} ${inputs} ${workspace}/Cargo.lock ${workspace}/rust/build.cmake
    COMMENT "Building the adapters in Rust with cargo" VERBATIM)
  add_custom_target(lagometer_rust_adapters ALL DEPENDS ${stamp})
endfunction()
