# Builds and runs the project beside this file with Reprise either `installed` into a folder of its own, or as a
# `subdirectory` (compiled a second time, so only configured unless REPRISE_LONG is set); or, with `pkgconfig`, its
# programs with nothing but a compiler and pkg-config. See tests/CMakeLists.txt.

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The header that includes all of Reprise does.
file(GLOB headers RELATIVE ${source}/include ${source}/include/reprise/*/*.h)
file(READ ${source}/include/reprise/reprise.h all)
foreach(header IN LISTS headers)
  if(NOT all MATCHES "#include \"${header}\"")
    message(FATAL_ERROR "reprise/reprise.h does not include ${header}")
  endif()
endforeach()

file(REMOVE_RECURSE ${work})
if(way STREQUAL "pkgconfig")
  # The folder is moved after installing, which the files of pkg-config have to survive.
  step(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${work}/elsewhere)
  file(RENAME ${work}/elsewhere ${work}/prefix)
  set(ENV{PKG_CONFIG_PATH} ${work}/prefix/${libraries}/pkgconfig)
  set(ENV{LD_LIBRARY_PATH} ${work}/prefix/${libraries}:$ENV{LD_LIBRARY_PATH})  # for a shared Reprise
  set(programs first_plan reprise)
  if(torch)
    list(APPEND programs training reprise-torch)
  endif()
  while(programs)
    list(POP_FRONT programs program package)
    execute_process(COMMAND ${pkg_config} --cflags --libs ${package}
      OUTPUT_VARIABLE flags COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    step(${compiler} ${source}/tests/consumer/${program}.cpp ${flags} -o ${work}/${program})
    step(${work}/${program})
  endwhile()
  return()
endif()

# What is compiled to be run once is compiled quickly.
set(options -G ${generator} -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_FLAGS_RELEASE=-O0 -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher} -D REPRISE_TORCH=${torch} -D Torch_DIR=${torch_folder})
if(way STREQUAL "installed")
  step(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${work}/prefix)
  if(check_installed_files)
    step(${check_installed_files} ${work}/prefix)
  endif()
  if(command)
    step(${work}/prefix/bin/reprise --help)
    if(torch)
      step(${work}/prefix/bin/reprise doctor)
    endif()
  endif()
  list(APPEND options -D CMAKE_PREFIX_PATH=${work}/prefix)
else()
  list(APPEND options -D REPRISE_SOURCE=${source})
endif()

step(${CMAKE_COMMAND} -S ${source}/tests/consumer -B ${work}/build ${options})
if(way STREQUAL "installed" OR DEFINED ENV{REPRISE_LONG})
  step(${CMAKE_COMMAND} --build ${work}/build --config ${config} --parallel 2)
  step(${CMAKE_CTEST_COMMAND} --test-dir ${work}/build --build-config ${config} --verbose --no-tests=error)
endif()
