# `cmake --install`: headers, library, command, licence, and the package behind find_package(Reprise).

include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)

install(TARGETS reprise EXPORT RepriseTargets)
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET reprise_command)
  install(TARGETS reprise_command)
endif()

if(TARGET reprise_torch)
  install(TARGETS reprise_torch EXPORT RepriseTorchTargets)
  install(EXPORT RepriseTorchTargets NAMESPACE Reprise:: DESTINATION ${package_directory})
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/RepriseLibTorch.cmake DESTINATION ${package_directory})
endif()

install(EXPORT RepriseTargets NAMESPACE Reprise:: DESTINATION ${package_directory})
get_target_property(REPRISE_LIBRARY_TYPE reprise TYPE)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/RepriseConfig.cmake.in RepriseConfig.cmake
  INSTALL_DESTINATION ${package_directory})
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(RepriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/RepriseConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/RepriseConfigVersion.cmake
  DESTINATION ${package_directory})
