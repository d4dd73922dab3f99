# What a newcomer does: configures without GoogleTest, builds what ./run builds, and installs it at once. Then the same folder
# as a shared library, which shows public names and nothing else.

set(results ${work}_results)
file(REMOVE_RECURSE ${work} ${results})

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${work} -G ${generator}
    -D CMAKE_CXX_COMPILER=${compiler} -D REPRISE_TORCH=OFF -D CMAKE_DISABLE_FIND_PACKAGE_GTest=ON
  OUTPUT_VARIABLE said COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "GoogleTest was not found: the tests are not built" said "${said}")
list(LENGTH said times)
if(NOT times EQUAL 1)
  message(FATAL_ERROR "Without GoogleTest, configuring says ${times} times that there are no tests")
endif()

step(${CMAKE_COMMAND} --build ${work} --target reprise_command --parallel ${jobs})
step(${CMAKE_COMMAND} --install ${work} --prefix ${results}/static)
foreach(file IN ITEMS bin/reprise share/bash-completion/completions/reprise share/zsh/site-functions/_reprise
    share/fish/vendor_completions.d/reprise.fish)
  file(SIZE ${results}/static/${file} bytes)
  if(bytes EQUAL 0)
    message(FATAL_ERROR "${file} was installed empty")
  endif()
endforeach()
step(${results}/static/bin/reprise --version)
if(check_installed_files)
  list(APPEND check_installed_files --unnamed ${work})
  step(${check_installed_files} ${results}/static)
endif()

# The same folder, shared. The consumer has nothing but what was installed.
step(${CMAKE_COMMAND} -S ${source} -B ${work} -D BUILD_SHARED_LIBS=ON)
step(${CMAKE_COMMAND} --build ${work} --parallel ${jobs})
step(${CMAKE_COMMAND} --install ${work} --prefix ${results}/shared)
if(check_installed_files)
  step(${files_test} build ${work})
  step(${check_installed_files} ${results}/shared)
endif()
step(${CMAKE_COMMAND} -S ${source}/tests/consumer -B ${results}/consumer -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_PREFIX_PATH=${results}/shared -D REPRISE_TORCH=OFF)
step(${CMAKE_COMMAND} --build ${results}/consumer --target consumer --parallel ${jobs})
step(${results}/consumer/consumer)
include(${source}/tests/public_names.cmake)
file(GLOB library ${results}/shared/*/libreprise.so ${results}/shared/*/*/libreprise.so)
require_public_names(${library} make_plan simulate Store::Store Chain)
