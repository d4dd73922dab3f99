# `cmake --build build/release --target package` makes a package for Debian of whatever is installed, `package_source` an
# archive of the sources.

set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_VENDOR "The Reprise project")
set(CPACK_PACKAGE_CONTACT "The Reprise project <reprise@project.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks inside a hard byte budget")
set(CPACK_PACKAGE_DESCRIPTION
"Training needs the activations of the forward pass again in the backward pass, and they are what fills the memory.
Reprise evicts some, packs others and replays what is asked for, bit for bit the same, so that live bytes never pass the
budget.
This package has the C++ library (for LibTorch, and for solvers and layers of one's own), its headers and documents, and
the command reprise, which plans and studies recorded steps.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libzstd-dev")  # linking a static library needs it
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, pkg-config")
# Not CPACK_DEBIAN_PACKAGE_SHLIBDEPS: it gives up at LibTorch, which no package of Debian has.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/DebianPackage.cmake)

set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME reprise-${PROJECT_VERSION})
set(CPACK_SOURCE_IGNORE_FILES "/[.]git(/|$)" "^${PROJECT_SOURCE_DIR}/build/" "/[.]venv(/|$)" "/__pycache__/" "/CMakeUserPresets[.]json$" "[.]swp$")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/SourceArchive.cmake)

include(CPack)
