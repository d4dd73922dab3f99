# Makes the archive of the sources, looks into it, and configures its engine-free part. See tests/CMakeLists.txt.

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})
step(${cpack} --config ${build}/CPackSourceConfig.cmake -B ${work}/archive)
file(ARCHIVE_EXTRACT INPUT ${work}/archive/reprise-${version}.tar.gz DESTINATION ${work})
set(source ${work}/reprise-${version})

foreach(file IN ITEMS run test bench CMakeLists.txt CMakePresets.json README.md LICENSE scripts/needs.py .clang-format
    include/reprise/reprise.h src/torch/api/session.cpp tests/package/source.cmake)
  if(NOT EXISTS ${source}/${file})
    message(FATAL_ERROR "the archive does not have ${file}. It has what git knows: was it added?")
  endif()
endforeach()
foreach(file IN ITEMS build .git .venv)
  if(EXISTS ${source}/${file} OR IS_SYMLINK ${source}/${file})
    message(FATAL_ERROR "the archive has ${file}, which is no source")
  endif()
endforeach()

step(${source}/test --help)  # it can still be executed
step(${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
  -D REPRISE_TORCH=OFF)
