# require_public_names(LIBRARY NAME...): the shared library shows these names of namespace reprise, and none of
# reprise::internal but those that a library or a program beside it needs. As a script: -D library=... -D names=...
function(require_public_names library)
  execute_process(COMMAND nm --dynamic --defined-only --demangle ${library} OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
  foreach(name IN LISTS ARGN)
    if(NOT shown MATCHES "reprise::${name}")
      message(FATAL_ERROR "${library} does not show reprise::${name}: is REPRISE_EXPORT missing?")
    endif()
  endforeach()
  # Templates of torch/checkpoint*.h call the first two; the others read options for the LibTorch side.
  string(REGEX REPLACE "[^\n]* reprise::internal::(site_at|CheckpointedSequence|letters_between|read_(budget|bytes|number|switch|word))[^\n]*" "" shown "${shown}")
  # Templates of chain/state.h call the first, the LibTorch side the others.
  string(REGEX REPLACE "[^\n]* reprise::internal::(fail_decoded_bytes|printable|prepare_planning|describe_floor|read_small_file|write_text|BackgroundThread|Disk|DiskFile|Ledger|Reservation)[^\n]*" "" shown "${shown}")
  # Weak ones are parts of the standard library, made for a type of ours.
  if(shown MATCHES "\n([^\n]* [TDBR] reprise::internal::[^\n]*)")
    message(FATAL_ERROR "${library} shows an inside: ${CMAKE_MATCH_1}")
  endif()
endfunction()

if(library)
  require_public_names(${library} ${names})
endif()
