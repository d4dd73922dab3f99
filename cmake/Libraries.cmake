# The two libraries, of everything in src/: Reprise::reprise, and Reprise::torch with LibTorch.

# ---- the library: one folder for each room ---------------------------------------------------------------------------

set(reprise_sources "")
foreach(room IN ITEMS trace simulate plan store chain report)
  file(GLOB room_sources CONFIGURE_DEPENDS src/${room}/*.cpp)
  list(APPEND reprise_sources ${room_sources})
endforeach()
file(GLOB plan_sources CONFIGURE_DEPENDS src/plan/*/*.cpp)
list(APPEND reprise_sources ${plan_sources})

# Every src/store/codecs/NAME.cpp defines NAME_codec(). The list of them is written here, so that a new file is enough.
file(GLOB codec_sources CONFIGURE_DEPENDS src/store/codecs/*.cpp)
set(codec_declarations "")
set(codec_addresses "")
foreach(source IN LISTS codec_sources)
  cmake_path(GET source STEM codec)
  string(APPEND codec_declarations "const Codec& ${codec}_codec();\n")
  list(APPEND codec_addresses "&${codec}_codec()")
endforeach()
list(JOIN codec_addresses ", " codec_addresses)
configure_file(src/store/every_codec.cpp.in ${PROJECT_BINARY_DIR}/generated/store/every_codec.cpp @ONLY)
list(APPEND reprise_sources ${codec_sources} ${PROJECT_BINARY_DIR}/generated/store/every_codec.cpp)

include(PageTexts)
list(APPEND reprise_sources ${PROJECT_BINARY_DIR}/generated/report/page_texts.cpp)

# The headers of fmt, whose compiled part is in src/trace/formatting.cpp.
add_library(reprise_fmt INTERFACE)
add_library(Reprise::fmt ALIAS reprise_fmt)
target_include_directories(reprise_fmt SYSTEM INTERFACE
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)

reprise_library(reprise ${reprise_sources})
add_library(Reprise::reprise ALIAS reprise)
foreach(library IN LISTS reprise_targets)
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # The last two are in no header of ours: whoever uses an installed Reprise does not need them.
  target_link_libraries(${library} PRIVATE ${zstd_library} Threads::Threads ${CMAKE_DL_LIBS}
    $<BUILD_INTERFACE:Reprise::fmt> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
endforeach()
reprise_unity(reprise_objects)
# The same names for each processor; and the one file that reads fmt otherwise.
file(GLOB alone CONFIGURE_DEPENDS src/store/*_portable.cpp src/store/*_avx2.cpp src/trace/formatting.cpp)
set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# ---- the LibTorch side -----------------------------------------------------------------------------------------------

if(REPRISE_TORCH)
  file(GLOB torch_sources CONFIGURE_DEPENDS src/torch/*/*.cpp)
  reprise_library(reprise_torch ${torch_sources})
  add_library(Reprise::torch ALIAS reprise_torch)
  reprise_torch_code(reprise_torch_objects <torch/libtorch/precompiled.h>)
  reprise_unity(reprise_torch_objects)
  set_source_files_properties(src/torch/memory/cuda_allocator.cpp PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS ${libtorch_cuda})
  if(libtorch_cuda STREQUAL "REPRISE_CUDA")
    set_source_files_properties(src/torch/memory/cuda_allocator.cpp PROPERTIES COMPILE_OPTIONS "-isystem;${REPRISE_CUDA_INCLUDE_DIR}")
  endif()
  # An installed one finds the engine-free library beside it, and LibTorch where it is now.
  set_target_properties(reprise_torch PROPERTIES EXPORT_NAME torch INSTALL_RPATH "$ORIGIN;${libtorch_folder}/lib")
  # Not fmt: LibTorch's folder of headers has another version of it.
  foreach(library IN LISTS reprise_torch_targets)
    string(REGEX REPLACE "_torch|_objects" "" engine_free ${library})
    target_link_libraries(${library} PUBLIC ${engine_free} Reprise::libtorch PRIVATE Threads::Threads)
  endforeach()
endif()
