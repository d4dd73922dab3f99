# What holds for every target made of our own code, and for nothing we only use: warnings and sanitizers.

function(reprise_own_code target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op>
    # g++ 12 sees overlapping copies in std::string's operator+ where there are none (its bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(REPRISE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()

  # The standard library's own checks: an index out of range ends the program instead of reading what is there.
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
  # The order of locks (src/torch/arbiter.h); NDEBUG says nothing here, as LibTorch's headers want it always.
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:REPRISE_CHECK_LOCKS>)
  if(REPRISE_SANITIZE)
    set(flags -fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${target} PRIVATE ${flags})
    target_link_options(${target} PRIVATE ${flags})
    # For tests: everything is several times slower, and some allocations are not worth trying.
    target_compile_definitions(${target} PRIVATE REPRISE_SANITIZED=1)
  endif()
endfunction()
