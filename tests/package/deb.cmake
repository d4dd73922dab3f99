# Makes the package for Debian, looks into it, and runs the command from where it was unpacked. See tests/CMakeLists.txt.

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})
step(${cpack} -G DEB --config ${build}/CPackConfig.cmake -B ${work})
file(GLOB package ${work}/reprise_${version}_*.deb)
if(NOT EXISTS "${package}")
  message(FATAL_ERROR "there is not one package reprise_${version}_*.deb in ${work}")
endif()

execute_process(COMMAND ${dpkg_deb} --info ${package} OUTPUT_VARIABLE info ECHO_OUTPUT_VARIABLE COMMAND_ERROR_IS_FATAL ANY)
foreach(field IN ITEMS "Package: reprise\n" "Version: ${version}\n" "Section: libdevel\n" "Maintainer: The Reprise project"
    "Depends: [^\n]*libc6[^\n]*libstdc[+][+]6" "Recommends: libzstd-dev\n" "Description: trains ")
  if(NOT info MATCHES " ${field}")
    message(FATAL_ERROR "the package does not say: ${field}")
  endif()
endforeach()
if(info MATCHES "libtorch")
  message(FATAL_ERROR "the package depends on LibTorch, which is in no package of Debian")
endif()

set(files bin/reprise share/bash-completion/completions/reprise include/reprise/reprise.h share/doc/reprise/copyright share/doc/reprise/README.md
    ${libraries}/cmake/Reprise/RepriseConfig.cmake ${libraries}/pkgconfig/reprise.pc)
if(torch)
  list(APPEND files include/reprise/torch/session.h ${libraries}/pkgconfig/reprise-torch.pc bin/reprise-torch share/reprise/documentation.txt
    ${libraries}/reprise/libreprise_preload.so ${libraries}/reprise/libreprise_live.so)
endif()
execute_process(COMMAND ${dpkg_deb} --contents ${package} OUTPUT_VARIABLE contents COMMAND_ERROR_IS_FATAL ANY)
foreach(file IN LISTS files)
  if(NOT contents MATCHES " root/root [^\n]* [.]/usr/${file}\n")
    message(FATAL_ERROR "the package does not have /usr/${file}, owned by root:\n${contents}")
  endif()
endforeach()
if(contents MATCHES "[.]/([^u\n][^\n]*)")
  message(FATAL_ERROR "the package has something outside of /usr: /${CMAKE_MATCH_1}")
endif()

step(${dpkg_deb} -x ${package} ${work}/unpacked)
if(check_installed_files)
  step(${check_installed_files} ${work}/unpacked)
endif()
step(${work}/unpacked/usr/bin/reprise --help)
if(torch)
  step(${work}/unpacked/usr/bin/reprise doctor)
endif()
