# Links the libraries together as far as -Wodr looks, and fails if a class or an enumeration of one name is two things in
# two files. What LibTorch and the other libraries do to themselves in their headers is not ours to judge: only
# complaints about files below the sources' folder count.

file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
set(ENV{LC_ALL} C)
execute_process(
  COMMAND ${compiler} -r -flto -flinker-output=rel -Wodr -fno-diagnostics-show-caret -o ${work}/together.o
    -Wl,--whole-archive ${libraries}
  RESULT_VARIABLE code ERROR_VARIABLE messages)
file(REMOVE ${work}/together.o)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "The libraries cannot be linked together:\n${messages}")
endif()
string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" root "${source}")
# Relative to the folder of the build where ccache made it so.
if(messages MATCHES "(^|\n)(${root}|[./]*[.])/(src|include)/[^\n]* warning: ")
  message(FATAL_ERROR "One name means two things:\n${messages}")
endif()
