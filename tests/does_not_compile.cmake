# Compiles a file that must not compile, and looks for the sentence of its first line among what the compiler says.
file(STRINGS ${file} sentence LIMIT_COUNT 1)
string(REGEX REPLACE "^// " "" sentence "${sentence}")
execute_process(COMMAND ${compiler} -std=c++20 -fsyntax-only -I${include} ${file}
  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(code EQUAL 0)
  message(FATAL_ERROR "${file} compiles, but it should not: ${sentence}")
endif()
if(NOT out MATCHES "static assertion failed:[^\n]*${sentence}" AND NOT out MATCHES "static_assert[^\n]*${sentence}")
  message(FATAL_ERROR "${file} does not compile, but for another reason than '${sentence}':\n${out}")
endif()
