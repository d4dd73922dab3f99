# Read by cpack. An archive of the sources has what git knows, as far as there is a git to ask; and never what
# CPACK_SOURCE_IGNORE_FILES names.

if(CPACK_INSTALL_CMAKE_PROJECTS)
  return()  # a package of what was built
endif()
list(GET CPACK_INSTALLED_DIRECTORIES 0 source)
execute_process(COMMAND git -C ${source} ls-files --others --directory
  OUTPUT_VARIABLE others OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REGEX REPLACE "([][+.*()^$?|\\\\])" "[\\1]" others "${others}")
string(REPLACE "\n" ";" others "${others}")
foreach(other IN LISTS others)
  list(APPEND CPACK_IGNORE_FILES "^${source}/${other}")
endforeach()
