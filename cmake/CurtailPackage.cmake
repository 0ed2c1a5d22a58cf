# `cpack --config build/release/CPackConfig.cmake -B build/package` makes a .deb of what `cmake --install` installs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME curtail)
set(CPACK_PACKAGE_CONTACT "curtail's developers <curtail@localhost>")
set(CPACK_STRIP_FILES TRUE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# The command and the applications need shared libraries, which dpkg-shlibdeps finds; a program that links curtail
# needs their headers.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "libabsl-dev, libboost-context-dev, libisal-dev, libpq-dev, libprotobuf-dev, libsqlite3-dev, libssl-dev, pkg-config, protobuf-compiler, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, memcached")
include(CPack)
