# REPRISE_TORCH: whether the room torch/ is built, and how code that includes LibTorch is compiled. Without LibTorch
# everything else is built.

include(RepriseLibTorch)
# Beside the usual places: where the scripts put the Python package.
file(GLOB own_libtorch ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
# Seen in the whole project, because those who link to Reprise::torch link to it as well.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

# A Python module is for the torch of its interpreter, and for no other.
if(REPRISE_PYTHON)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/build_backend/installed_torch.py
    OUTPUT_VARIABLE torch_of_python OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_VARIABLE problem ERROR_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${problem}")
  endif()
  set(Torch_DIR ${torch_of_python}/share/cmake/Torch CACHE PATH "Where TorchConfig.cmake is" FORCE)
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED REPRISE_TORCH)
  reprise_find_libtorch(QUIET HINTS ${own_libtorch})
  if(NOT Torch_FOUND)
    message(STATUS "LibTorch was not found: the engine-free part is built. Torch_DIR can say where TorchConfig.cmake is")
  endif()
endif()
option(REPRISE_TORCH "Build the LibTorch side, Reprise::torch" ${Torch_FOUND})
if(REPRISE_TORCH)
  reprise_find_libtorch(REQUIRED HINTS ${own_libtorch})
endif()
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
if(NOT REPRISE_TORCH)
  return()
endif()
cmake_path(SET libtorch_folder NORMALIZE "${Torch_DIR}/../../..")
string(REGEX REPLACE "/$" "" libtorch_folder "${libtorch_folder}")

# Its version, from the first of the places where versions have it; and whether it was tried: every run of ./test does that
# with one version, and docs/versions.json has the others.
set(libtorch_of_tests 2.13.0)  # as in scripts/needs.py
foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(EXISTS ${libtorch_folder}/include/${header})
    file(STRINGS ${libtorch_folder}/include/${header} libtorch_version REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
    break()
  endif()
endforeach()
list(TRANSFORM libtorch_version REPLACE "^.* " "")
list(JOIN libtorch_version "." libtorch_version)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/versions.json)
file(READ ${PROJECT_SOURCE_DIR}/docs/versions.json tried_versions)
string(FIND "${tried_versions}" "\"version\": \"${libtorch_version}\"" found)
set(libtorch_tried 1)
if(found EQUAL -1 AND NOT libtorch_version VERSION_EQUAL libtorch_of_tests)
  set(libtorch_tried 0)
  message(NOTICE "LibTorch ${libtorch_version} was not tried with this Reprise; docs/versions.md has those that were. "
    "It may not build. If it does, `reprise doctor` says whether a session works")
endif()

# Whether it has CUDA, by its files; and the headers of CUDA's runtime, which its own include: from packages beside it, or
# from CUDA's own installation. There is no need for a compiler or a library of CUDA's. libtorch_cuda is what
# src/torch/memory/cuda_allocator.cpp is told.
set(libtorch_cuda REPRISE_NO_CUDA)
if(EXISTS ${libtorch_folder}/lib/libc10_cuda.so AND EXISTS ${libtorch_folder}/include/c10/cuda/CUDACachingAllocator.h)
  file(GLOB beside_libtorch ${libtorch_folder}/../nvidia/*/include)
  find_path(REPRISE_CUDA_INCLUDE_DIR crt/host_defines.h DOC "Where CUDA's cuda_runtime_api.h and crt/host_defines.h are"
    HINTS ${beside_libtorch} PATHS /usr/local/cuda/include ENV CUDA_PATH ENV CUDA_HOME PATH_SUFFIXES include)
  mark_as_advanced(REPRISE_CUDA_INCLUDE_DIR)
  if(EXISTS ${REPRISE_CUDA_INCLUDE_DIR}/cuda_runtime_api.h)
    set(libtorch_cuda REPRISE_CUDA)
  else()
    set(libtorch_cuda REPRISE_NO_CUDA_HEADERS)
    message(NOTICE "LibTorch has CUDA, but the headers of CUDA's runtime were not found: sessions on CUDA are left out. "
      "REPRISE_CUDA_INCLUDE_DIR can say where cuda_runtime_api.h and crt/host_defines.h are")
  endif()
endif()

# reprise_torch_code(TARGET [HEADER...]): for targets whose files include LibTorch. It takes long to read, so these
# headers are read once for all files of the target. They are named as `<...>`, without the folder of this checkout, so that
# ccache finds them, and what was compiled with them, in others.
function(reprise_torch_code target)
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
  # LibTorch was built with it, and some of its classes have other members without.
  target_compile_definitions(${target} PRIVATE NDEBUG)
  # g++ 12 sees writes outside of objects and reads of unset ones when it inlines LibTorch's reference counts, and again
  # in std::string's operator+, where there are none.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized>)
  # LibTorch's reference counts have a fence, of which g++ says that the thread sanitizer does not see it.
  if(REPRISE_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
  reprise_tell_ccache(${target})
endfunction()

# reprise_training_code(TARGET): for programs of tests and examples that train. <torch/torch.h> takes longest of all to read, so
# one target reads it for all of them: not one of theirs, for which the others would have to wait. Nothing of theirs is worth
# optimizing, because LibTorch does the work, and the library is what is checked; but the thread sanitizer has to see all
# code, or it does not see how threads synchronise.
function(reprise_training_code target)
  if(NOT TARGET reprise_training_headers)
    file(WRITE ${PROJECT_BINARY_DIR}/generated/training_headers.cpp "")
    add_library(reprise_training_headers OBJECT ${PROJECT_BINARY_DIR}/generated/training_headers.cpp)
    target_include_directories(reprise_training_headers PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(reprise_training_headers PRIVATE Reprise::libtorch)
    set(headers <torch/torch.h> <torch/libtorch/precompiled.h>)
    if(TARGET GTest::gtest)
      target_link_libraries(reprise_training_headers PRIVATE GTest::gtest)
      list(PREPEND headers <gtest/gtest.h>)
    endif()
    reprise_own_code(reprise_training_headers)
    reprise_training_options(reprise_training_headers ${headers})
    reprise_compiled_as_a_program(reprise_training_headers)
  endif()
  reprise_training_options(${target})
  target_precompile_headers(${target} REUSE_FROM reprise_training_headers)
endfunction()

# What has to be the same for all who use these headers.
function(reprise_training_options target)
  reprise_torch_code(${target} ${ARGN})
  target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)  # as GoogleTest's package has it
  if(NOT REPRISE_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
    if(REPRISE_SANITIZE)
      target_compile_options(${target} PRIVATE -O0 -g1 -fno-sanitize=all)
    endif()
  endif()
endfunction()

# reprise_compiled_as_a_program(TARGET): for a library that is linked with programs only, and shares their headers.
function(reprise_compiled_as_a_program target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE)
endfunction()
