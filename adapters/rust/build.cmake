# SPDX-License-Identifier: Apache-2.0
# Builds the adapters in Rust with cargo and copies each one's libraries and programs to its folder. An adapter that
# does not build is left out, with its reason in missing.txt, and the others are still built. Variables: names,
# programs_NAME (both with commas), cargo, folder (of all adapters), workspace, target, profile (cargo's), stamp.
string(REPLACE "," ";" names "${names}")

# What cargo builds for an adapter.
function(files_of name result)
  string(REPLACE "," ";" programs "${programs_${name}}")
  set(${result} liblagometer_${name}.so ${programs} PARENT_SCOPE)
endfunction()

function(is_built name result)
  files_of(${name} files)
  set(${result} TRUE PARENT_SCOPE)
  foreach(file IN LISTS files)
    if(NOT EXISTS ${target}/${profile}/${file})
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# run_cargo(RESULT OPTION...): RESULT gets the errors in its output.
function(run_cargo result)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${target} ${cargo} build --profile ${profile}
    --locked --manifest-path ${workspace}/Cargo.toml ${ARGN} RESULT_VARIABLE code ERROR_VARIABLE said)
  if(code EQUAL 0)
    set(said "")
  else()
    message(STATUS "${said}")
  endif()
  set(${result} "${said}" PARENT_SCOPE)
endfunction()

# Cargo recreates the files of targets that are up to date, so files that exist afterwards were built.
foreach(name IN LISTS names)
  files_of(${name} files)
  list(TRANSFORM files PREPEND ${target}/${profile}/)
  file(REMOVE ${files})
endforeach()
run_cargo(said --workspace --keep-going)

file(REMOVE ${stamp})
set(all_built TRUE)
foreach(name IN LISTS names)
  # Maybe it builds alone: if one adapter's dependency is not available, the others stop before they begin.
  is_built(${name} built)
  if(NOT built)
    run_cargo(said --package lagometer-${name})
    is_built(${name} built)
  endif()
  files_of(${name} files)
  if(NOT built)
    set(all_built FALSE)
    string(REGEX MATCH "error[^\n]*" reason "${said}")
    message(STATUS "adapter ${name}: left out: cargo build failed: ${reason}")
    list(TRANSFORM files PREPEND ${folder}/${name}/)
    file(REMOVE ${files})
    file(WRITE ${folder}/${name}/missing.txt "cargo build failed (${reason}); to see all of it: cd adapters && cargo build --release --locked --package lagometer-${name}\n")
    continue()
  endif()
  # Under another name first: a running worker keeps the library that it has opened.
  foreach(file IN LISTS files)
    set(new ${folder}/${name}/${file}.new)
    execute_process(COMMAND ${CMAKE_COMMAND} -E copy ${target}/${profile}/${file} ${new} COMMAND_ERROR_IS_FATAL ANY)
    file(RENAME ${new} ${folder}/${name}/${file})
  endforeach()
  file(REMOVE ${folder}/${name}/missing.txt)
endforeach()
if(all_built)
  file(TOUCH ${stamp})
endif()
