# How our own code is compiled, and what a library of ours is. A target is made of these:
#
#   function                       for                                    what it does
#   reprise_own_code               every target                           warnings as errors, sanitizers, checks of debug builds
#   reprise_installed_code         what is installed                      no folder of this machine in it, and hardened
#   reprise_unity                  libraries, command, Python module      several files as one, unless REPRISE_UNITY is off
#   reprise_unity_tests            tests                                  the same, if REPRISE_UNITY_TESTS is on (./test)
#   reprise_hardly_sanitized       what is around the libraries           no optimization and fewer checks under sanitizers
#   reprise_torch_code             what includes LibTorch                 its flags, and headers that are read once for a target
#   reprise_training_code          what includes <torch/torch.h>          no optimization, and that header read once for all targets
#   reprise_compiled_as_a_program  libraries of such programs only        the flags of a program, so that they share that header
#
# reprise_unity_tests is in tests/CMakeLists.txt, the last three are in LibTorchSide.cmake.

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
  # The order of locks (src/torch/memory/arbiter.h); NDEBUG says nothing here, as LibTorch's headers want it always.
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:REPRISE_CHECK_LOCKS>)
  if(REPRISE_SANITIZE)
    set(flags -fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(REPRISE_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      list(APPEND flags -fsanitize=fuzzer-no-link)  # says which code was reached
    endif()
    target_compile_options(${target} PRIVATE ${flags})
    target_link_options(${target} PRIVATE ${flags})
    # For tests: everything is several times slower, and some allocations are not worth trying.
    target_compile_definitions(${target} PRIVATE REPRISE_SANITIZED=1)
  endif()
endfunction()

# What compilers and linkers offer against those who make use of a mistake. Of Reprise itself, and of builds that optimize:
# the checks of _FORTIFY_SOURCE are made by the optimizer. What is a part of another project is compiled as that project says.
set(hardened_compiling "")
set(hardened_linking "")
if(PROJECT_IS_TOP_LEVEL AND NOT REPRISE_SANITIZE)
  include(CheckCXXCompilerFlag)
  include(CheckCXXSourceCompiles)
  include(CheckLinkerFlag)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)  # CMAKE_POSITION_INDEPENDENT_CODE then holds for linking programs, too
  check_cxx_compiler_flag(-fstack-protector-strong REPRISE_HAS_STACK_PROTECTOR)
  if(REPRISE_HAS_STACK_PROTECTOR)
    list(APPEND hardened_compiling -fstack-protector-strong)
  endif()
  set(CMAKE_REQUIRED_FLAGS "-O1 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_cxx_source_compiles("#include <cstdlib>
    #if __USE_FORTIFY_LEVEL != 3
    #error
    #endif
    int main() {}" REPRISE_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  list(APPEND hardened_compiling -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${REPRISE_HAS_FORTIFY_3}>,3,2>)
  check_linker_flag(CXX -Wl,-z,relro,-z,now REPRISE_HAS_FULL_RELRO)
  if(REPRISE_HAS_FULL_RELRO)
    list(APPEND hardened_linking -Wl,-z,relro,-z,now)
  endif()
endif()

# reprise_installed_code(TARGET): for the libraries, programs and modules that are installed.
function(reprise_installed_code target)
  target_compile_options(${target} PRIVATE
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${PROJECT_BINARY_DIR}/=  # __FILE__ in messages
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:${hardened_compiling}>")
  target_link_options(${target} PRIVATE "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:${hardened_linking}>")
  # One search path for libraries, before and after it is installed. For another one, CMake would reserve room by empty entries,
  # and the loader takes each for the current directory.
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# reprise_keep_types(TARGET): what a link with -flto needs to see that a name means two things, beside the usual code.
function(reprise_keep_types target)
  if(REPRISE_CHECK_NAMES)
    target_compile_options(${target} PRIVATE -flto -ffat-lto-objects)
    target_link_options(${target} INTERFACE $<BUILD_INTERFACE:-fno-lto>)  # who links it wants the usual code
  endif()
endfunction()

# reprise_hardly_sanitized(TARGET): for what is around the libraries. Checks of undefined behaviour, and optimizing them, take
# two thirds of the compiler's time.
function(reprise_hardly_sanitized target)
  if(REPRISE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(REPRISE_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
endfunction()

# reprise_tell_ccache(TARGET): what ccache has to be told about precompiled headers.
function(reprise_tell_ccache target)
  if(CCACHE_PROGRAM AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL CCACHE_PROGRAM)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CCACHE_PROGRAM}")
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()

# reprise_unity(TARGET): several files as one, if that is wanted. g++ takes each for a header then, and warns of types in it
# that only that file knows; and, where it inlines more, of optional values that are read although they are never unset.
function(reprise_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REPRISE_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  if(REPRISE_UNITY)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage -Wno-maybe-uninitialized>
      $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>)
  endif()
endfunction()

# reprise_library(NAME SOURCE...): the library NAME. The command, the tests and the benchmarks look inside of it, and link to
# Reprise::NAME_insides: the same library or, beside a shared one, which hides its insides, a static one. All are made of
# NAME_objects, so that ccache knows what was compiled, whichever it is for. Sets NAME_targets, all of these.
macro(reprise_library name)
  add_library(${name}_objects OBJECT ${ARGN})
  set(${name}_targets ${name}_objects ${name})
  if(BUILD_SHARED_LIBS)
    list(APPEND ${name}_targets ${name}_static)
    add_library(${name} SHARED $<TARGET_OBJECTS:${name}_objects>)
    add_library(${name}_static STATIC $<TARGET_OBJECTS:${name}_objects>)
    set_target_properties(${name} PROPERTIES
      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    add_library(Reprise::${name}_insides ALIAS ${name}_static)
  else()
    add_library(${name} STATIC $<TARGET_OBJECTS:${name}_objects>)
    add_library(Reprise::${name}_insides ALIAS ${name})
  endif()
  set_target_properties(${${name}_targets} PROPERTIES
    LINKER_LANGUAGE CXX CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Bytes are 64 bits everywhere; a narrower number is a mistake. Only clang counts signs among it.
  target_compile_options(${name}_objects PRIVATE -Wconversion $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>)
  target_include_directories(${name}_objects PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${name}_objects SYSTEM PRIVATE ${XXHASH_INCLUDE_DIR})
  foreach(target IN LISTS ${name}_targets)
    reprise_own_code(${target})
    reprise_installed_code(${target})
    reprise_keep_types(${target})
  endforeach()
endmacro()
