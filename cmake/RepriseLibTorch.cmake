# reprise_find_libtorch(ARGUMENT... of find_package): the imported target Reprise::libtorch, and whether there is one as
# Torch_FOUND. Also a part of the installed package, where find_package(Reprise COMPONENTS torch) uses it.

# Imported targets are visible outside of a function, the variables it sets are not.
function(reprise_find_libtorch)
  set(Torch_FOUND TRUE)
  set(libraries torch)
  if(NOT TARGET torch AND NOT TARGET Reprise::libtorch)
    cmake_parse_arguments(given "" "" "HINTS" ${ARGN})
    find_path(folder TorchConfig.cmake NO_CACHE PATH_SUFFIXES share/cmake/Torch
      HINTS ${Torch_DIR} PATHS ${Torch_ROOT} ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH ${given_HINTS})
    cmake_path(SET prefix NORMALIZE "${folder}/../../..")
    set(cuda "")
    if(EXISTS ${prefix}/share/cmake/Caffe2/Caffe2Config.cmake)
      file(STRINGS ${prefix}/share/cmake/Caffe2/Caffe2Config.cmake cuda REGEX "CAFFE2_USE_CUDA (1|ON|TRUE)")
    endif()
    if(cuda)
      # Built for CUDA, as the Python packages for Linux are, its own CMake package asks for CUDA's compiler and headers.
      # Nothing of ours needs more than the part for the CPU. Who wants more calls find_package(Torch) first.
      set(Torch_DIR ${folder} CACHE PATH "Where TorchConfig.cmake is")
      set(libraries ${prefix}lib/libtorch_cpu.so ${prefix}lib/libc10.so)
      set(includes ${prefix}include ${prefix}include/torch/csrc/api/include)
      message(STATUS "Found Torch: ${prefix} (built for CUDA, its CPU part is linked)")
    else()
      set(kineto_LIBRARY kineto)  # its packages say they have it and do not; nothing of ours needs it
      set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)  # Reprise may be a part of the project that links it
      find_package(Torch ${ARGN})
    endif()
  endif()
  if(Torch_FOUND AND NOT TARGET Reprise::libtorch)
    add_library(Reprise::libtorch INTERFACE IMPORTED)
    if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
      set_target_properties(Reprise::libtorch PROPERTIES IMPORTED_GLOBAL ON)
    endif()
    target_link_libraries(Reprise::libtorch INTERFACE ${libraries})
    target_include_directories(Reprise::libtorch SYSTEM INTERFACE ${includes})
  endif()
  set(Torch_FOUND ${Torch_FOUND} PARENT_SCOPE)
endfunction()
