# Installs what find_package(curtail) and pkg-config need; the layers install themselves (curtail_library).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/curtail)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/curtailConfig.cmake.in
  ${PROJECT_BINARY_DIR}/curtailConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/curtailConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS curtail EXPORT curtail-targets)
install(EXPORT curtail-targets NAMESPACE curtail:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/curtailConfig.cmake ${PROJECT_BINARY_DIR}/curtailConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/CurtailProto.cmake ${CMAKE_CURRENT_LIST_DIR}/CurtailApp.cmake
  ${CMAKE_CURRENT_LIST_DIR}/CurtailEmbed.cmake DESTINATION ${package_dir})

# pkg-config finds the folders from where the file lies, so an installation may be moved.
file(RELATIVE_PATH CURTAIL_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/curtail.pc.in ${PROJECT_BINARY_DIR}/curtail.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/curtail.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
