# `cmake --install`: headers, library, command, documents, examples to read, and the packages behind
# find_package(Reprise) and pkg-config.

include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)

install(TARGETS reprise EXPORT RepriseTargets)
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# Links between the documents lead to each other here, too.
set(document_directory ${CMAKE_INSTALL_DATAROOTDIR}/doc/reprise)
install(FILES LICENSE README.md SECURITY.md CHANGELOG.md DESTINATION ${document_directory})
install(DIRECTORY docs examples DESTINATION ${document_directory}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.cpp" PATTERN "*.h")
if(TARGET reprise_command)
  install(TARGETS reprise_command)
  # What shells complete is written by the command itself, now that it is to be installed.
  set(completions ${PROJECT_BINARY_DIR}/generated/completions)
  file(MAKE_DIRECTORY ${completions})
  foreach(shell IN ITEMS bash zsh fish)
    install(CODE "execute_process(COMMAND $<TARGET_FILE:reprise_command> completion ${shell}
      OUTPUT_FILE ${completions}/${shell} COMMAND_ERROR_IS_FATAL ANY)")
  endforeach()
  install(FILES ${completions}/bash DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions RENAME reprise)
  install(FILES ${completions}/zsh DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions RENAME _reprise)
  install(FILES ${completions}/fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d
    RENAME reprise.fish)
endif()
if(TARGET reprise_torch_command)
  install(TARGETS reprise_torch_command)
  install(FILES ${PROJECT_BINARY_DIR}/tools/documentation.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise)
  # Not for linking: the first is preloaded, the second is loaded by it.
  install(TARGETS reprise_preload reprise_live LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/reprise)
endif()

if(TARGET reprise_torch)
  install(TARGETS reprise_torch EXPORT RepriseTorchTargets)
  install(EXPORT RepriseTorchTargets NAMESPACE Reprise:: DESTINATION ${package_directory})
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/RepriseLibTorch.cmake DESTINATION ${package_directory})
endif()

install(EXPORT RepriseTargets NAMESPACE Reprise:: DESTINATION ${package_directory})
get_target_property(REPRISE_LIBRARY_TYPE reprise TYPE)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/templates/RepriseConfig.cmake.in RepriseConfig.cmake
  INSTALL_DESTINATION ${package_directory})
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(RepriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/RepriseConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/RepriseConfigVersion.cmake
  DESTINATION ${package_directory})

# ---- reprise.pc and, with LibTorch, reprise-torch.pc: for those who build without CMake ------------------------------

set(pc_directory ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
  set(pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH pc_prefix /${pc_directory} /)
  string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# A static library leaves linking what it uses to its user; a shared one has it already.
set(pc_requires "")
set(pc_libs "")
if(REPRISE_LIBRARY_TYPE STREQUAL "STATIC_LIBRARY")
  set(pc_requires "libzstd")
  set(pc_libs -pthread)
  foreach(library IN LISTS CMAKE_DL_LIBS)
    string(APPEND pc_libs " -l${library}")
  endforeach()
endif()
set(pc_files reprise.pc)

if(TARGET reprise_torch)
  set(pc_torch ${libtorch_folder})
  # What LibTorch's own package asks for: the ABI of strings, where there is a choice.
  set(pc_torch_flags "")
  if(TARGET torch)
    get_property(pc_torch_flags TARGET torch PROPERTY INTERFACE_COMPILE_OPTIONS)
    list(JOIN pc_torch_flags " " pc_torch_flags)
  endif()
  list(APPEND pc_files reprise-torch.pc)
endif()

foreach(file IN LISTS pc_files)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/templates/${file}.in ${PROJECT_BINARY_DIR}/generated/${file} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/generated/${file} DESTINATION ${pc_directory})
endforeach()
