# `cmake --install`: headers, library, command, documents, examples to read, and the packages behind
# find_package(Reprise) and pkg-config.

include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)

install(TARGETS reprise EXPORT RepriseTargets)
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# Links between the documents lead to each other here, too.
set(document_directory ${CMAKE_INSTALL_DATAROOTDIR}/doc/reprise)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${document_directory})
install(DIRECTORY docs examples DESTINATION ${document_directory}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.cpp" PATTERN "*.h")
if(TARGET reprise_command)
  install(TARGETS reprise_command)
  set(completions ${PROJECT_BINARY_DIR}/generated/completions)
  install(FILES ${completions}/bash DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions RENAME reprise)
  install(FILES ${completions}/zsh DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions RENAME _reprise)
  install(FILES ${completions}/fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d
    RENAME reprise.fish)
endif()
if(TARGET reprise_torch_command)
  install(TARGETS reprise_torch_command)
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
include(PkgConfig)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/RepriseConfig.cmake.in RepriseConfig.cmake
  INSTALL_DESTINATION ${package_directory})
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(RepriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/RepriseConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/RepriseConfigVersion.cmake
  DESTINATION ${package_directory})
