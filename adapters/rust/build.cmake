# SPDX-License-Identifier: Apache-2.0
# Builds one adapter with cargo and puts its library and programs into the adapter's folder. What does not build is left
# out with its reason in missing.txt, and the rest goes on. Variables: name, programs, cargo, folder, workspace, target.
file(MAKE_DIRECTORY ${folder})
set(library liblagometer_${name}.so)

# Without the registry, what was fetched before will do.
set(command ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${target} ${cargo} build --release --locked
    --manifest-path ${workspace}/Cargo.toml --package lagometer-${name})
execute_process(COMMAND ${command} RESULT_VARIABLE code ERROR_VARIABLE said)
if(NOT code EQUAL 0)
  execute_process(COMMAND ${command} --offline RESULT_VARIABLE code ERROR_QUIET)
endif()

if(NOT code EQUAL 0)
  message(STATUS "${said}")
  string(REGEX MATCH "error[^\n]*" reason "${said}")
  message(STATUS "adapter ${name}: left out: cargo build failed: ${reason}")
  file(REMOVE ${folder}/${library} ${folder}/built.stamp)
  file(WRITE ${folder}/missing.txt "cargo build failed (${reason}); to see all of it: cd adapters && cargo build --release --locked --package lagometer-${name}\n")
  return()
endif()

# Under another name first: a worker that runs keeps the library that it has opened.
foreach(file IN ITEMS ${library} ${programs})
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy ${target}/release/${file} ${folder}/${file}.new COMMAND_ERROR_IS_FATAL ANY)
  file(RENAME ${folder}/${file}.new ${folder}/${file})
endforeach()
file(REMOVE ${folder}/missing.txt)
file(TOUCH ${folder}/built.stamp)
