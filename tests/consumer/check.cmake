# Builds and runs the project beside this file with Reprise either `installed` into a folder of its own, or as a
# `subdirectory` (compiled a second time, so only configured unless REPRISE_LONG is set). See tests/CMakeLists.txt.

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})
set(options -G ${generator} -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher})
if(way STREQUAL "installed")
  step(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${work}/prefix)
  if(command)
    step(${work}/prefix/bin/reprise --help)
  endif()
  list(APPEND options -D CMAKE_PREFIX_PATH=${work}/prefix)
else()
  list(APPEND options -D REPRISE_SOURCE=${source})
endif()

step(${CMAKE_COMMAND} -S ${source}/tests/consumer -B ${work}/build ${options})
if(way STREQUAL "installed" OR DEFINED ENV{REPRISE_LONG})
  step(${CMAKE_COMMAND} --build ${work}/build --config ${config} --parallel 2)
  step(${work}/build/consumer)
  step(${work}/build/readme)
endif()
