# SPDX-License-Identifier: Apache-2.0
# Builds the bridge with cargo and copies it to its folder. If that fails the reason is in missing.txt, and the rest of
# the build goes on. Variables: cargo, source (the crate), folder, target, profile (cargo's), stamp.
set(program lagometer-zenoh-bridge)
execute_process(COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${target} ${cargo} build --profile ${profile} --locked
  --manifest-path ${source}/Cargo.toml RESULT_VARIABLE code ERROR_VARIABLE said)
file(REMOVE ${stamp} ${folder}/missing.txt)
file(MAKE_DIRECTORY ${folder})
if(NOT code EQUAL 0)
  string(REGEX MATCH "error[^\n]*" reason "${said}")
  message(STATUS "${said}")
  message(STATUS "bridge zenoh: left out: cargo build failed: ${reason}")
  file(REMOVE ${folder}/${program})
  file(WRITE ${folder}/missing.txt "${program}: cargo build failed (${reason}); it needs cmake, a C compiler and libclang\n")
  return()
endif()
# Under another name first: a running bridge keeps its program.
execute_process(COMMAND ${CMAKE_COMMAND} -E copy ${target}/${profile}/${program} ${folder}/${program}.new
  COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${folder}/${program}.new ${folder}/${program})
file(TOUCH ${stamp})
