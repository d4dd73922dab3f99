# REPRISE_BUILT: the libraries of a finished build, in the place of compiling them once more. For the Python package, whose
# module is all that is left to build where the rest was built and tested.

foreach(name IN ITEMS reprise reprise_torch)
  set(file ${REPRISE_BUILT}/lib${name}.a)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "REPRISE_BUILT is ${REPRISE_BUILT}: there is no lib${name}.a, which a static build with LibTorch has")
  endif()
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${file})
  target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(${name} INTERFACE cxx_std_20)
  add_library(Reprise::${name}_insides ALIAS ${name})
endforeach()
target_link_libraries(reprise INTERFACE ${zstd_library} Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(reprise_torch INTERFACE reprise Reprise::libtorch)
