# Read by cpack when everything is in its place, before the package is made of it: which packages of Debian have the
# libraries that its programs and libraries need, and the licence where Debian expects it.

if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(prefix ${root}${CPACK_PACKAGING_INSTALL_PREFIX})
configure_file(${prefix}/share/doc/reprise/LICENSE ${prefix}/share/doc/reprise/copyright COPYONLY)
file(REMOVE ${prefix}/share/doc/reprise/LICENSE)

set(programs "")
file(GLOB_RECURSE files ${prefix}/bin/* ${prefix}/lib/*.so)
foreach(file IN LISTS files)
  file(READ ${file} beginning LIMIT 4 HEX)
  if(beginning STREQUAL "7f454c46")  # not a script
    list(APPEND programs ${file})
  endif()
endforeach()
if(NOT programs)
  return()
endif()
find_program(shlibdeps dpkg-shlibdeps)
if(NOT shlibdeps)
  message(FATAL_ERROR "there is no dpkg-shlibdeps, which says what the package depends on; type: apt-get install dpkg-dev")
endif()
# It wants to be in the folder of a Debian source package.
set(scratch ${root}/../shlibdeps)
file(WRITE ${scratch}/debian/control "Source: reprise\n\nPackage: reprise\nArchitecture: any\n")
execute_process(COMMAND ${shlibdeps} --ignore-missing-info -O -xreprise -l${prefix}/lib ${programs}
  WORKING_DIRECTORY ${scratch} OUTPUT_VARIABLE depends ERROR_VARIABLE messages RESULT_VARIABLE code)
if(NOT code EQUAL 0 OR NOT depends MATCHES "shlibs:Depends=([^\n]+)")
  message(FATAL_ERROR "dpkg-shlibdeps cannot say what the package depends on: ${messages}")
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${CMAKE_MATCH_1}")
