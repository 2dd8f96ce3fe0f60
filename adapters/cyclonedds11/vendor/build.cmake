# SPDX-License-Identifier: Apache-2.0
# Builds the Cyclone DDS that the crate brings into folder/installed, unless this very one is there already. What failed is
# said in the file `reason`, in one line.
# Variables: cargo, manifest, folder, compiler, compiler_cxx, iceoryx_posh, iceoryx_hoofs (folders of their CMake files),
# reason.
file(MAKE_DIRECTORY ${folder})

function(fail text)
  string(REGEX REPLACE "[\n ]+" " " text "${text}")
  file(WRITE ${reason} "${text}")
  message(FATAL_ERROR "${text}")
endfunction()

# run(WHAT COMMAND...): what it said goes to a file that the reason names.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_FILE ${folder}/log.txt ERROR_FILE ${folder}/log.txt)
  if(code)
    file(READ ${folder}/log.txt said)
    string(REGEX MATCH "[^\n]*[Ee]rror[: ][^\n]*" error "${said}")
    fail("${what} failed (${error}); all of it is in ${folder}/log.txt")
  endif()
endfunction()

# Where cargo keeps the sources; it fetches and checks them, if that was not done yet.
execute_process(COMMAND ${cargo} metadata --locked --format-version 1 --manifest-path ${manifest}
  RESULT_VARIABLE code OUTPUT_VARIABLE metadata ERROR_VARIABLE said)
if(code)
  string(REGEX MATCH "error[^\n]*" error "${said}")
  fail("cargo could not fetch the crate cyclors, which brings the sources of Cyclone DDS 11 (${error})")
endif()
string(REGEX MATCH "\"manifest_path\":\"([^\"]*/cyclors-[^\"]*)/Cargo.toml\"" found "${metadata}")
set(source ${CMAKE_MATCH_1}/cyclonedds)
if(NOT EXISTS ${source}/CMakeLists.txt)
  fail("the crate cyclors has no sources of Cyclone DDS in ${source}")
endif()

file(SHA256 ${CMAKE_CURRENT_LIST_FILE} recipe)
set(inputs "${source} ${compiler} ${compiler_cxx} ${iceoryx_posh} ${recipe}")
if(EXISTS ${folder}/inputs.txt)
  file(READ ${folder}/inputs.txt before)
  if(before STREQUAL inputs)
    return()
  endif()
endif()
file(REMOVE_RECURSE ${folder}/inputs.txt ${folder}/build ${folder}/installed)
message(STATUS "adapter cyclonedds11: building Cyclone DDS 11, which takes minutes")
# As a distribution builds it, but static and hidden: a worker may have the 0.10 series beside it.
run("CMake for Cyclone DDS 11" ${CMAKE_COMMAND} -S ${source} -B ${folder}/build -G Ninja
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=${compiler} -DCMAKE_CXX_COMPILER=${compiler_cxx}
  -DCMAKE_INSTALL_PREFIX=${folder}/installed -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  -DBUILD_SHARED_LIBS=OFF -DBUILD_IDLC=OFF -DBUILD_DDSPERF=OFF -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOCS=OFF
  -DENABLE_LTO=OFF -DENABLE_SSL=OFF -DENABLE_SECURITY=OFF -DENABLE_ICEORYX=ON -DENABLE_ICEORYX2=OFF
  -Diceoryx_posh_DIR=${iceoryx_posh} -Diceoryx_hoofs_DIR=${iceoryx_hoofs})
run("building Cyclone DDS 11" ${CMAKE_COMMAND} --build ${folder}/build --target install)
file(WRITE ${folder}/inputs.txt "${inputs}")
