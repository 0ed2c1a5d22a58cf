# curtail_embed(SOURCE FUNCTION [GZIP] FILE...)
#
# Writes SOURCE, which defines `std::span<const curtail::EmbeddedFile> FUNCTION()` over the files, by their names without a
# folder; FUNCTION is qualified: curtail::observe::DashboardFiles. GZIP compresses each. A change of a file configures anew.
function(curtail_embed source function)
  cmake_parse_arguments(ARG "GZIP" "" "" ${ARGN})
  string(REGEX REPLACE "::[^:]+$" "" namespace ${function})
  string(REGEX REPLACE "^.*::" "" name ${function})
  set(arrays)
  set(entries)
  set(number 0)
  foreach(file ${ARG_UNPARSED_ARGUMENTS})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(base ${file} NAME)
    if(ARG_GZIP)
      file(ARCHIVE_CREATE OUTPUT ${source}.gz PATHS ${file} FORMAT raw COMPRESSION GZip)
      set(file ${source}.gz)
    endif()
    file(READ ${file} bytes HEX)
    if(ARG_GZIP)
      # The header has the time: without it each configuration would build anew what has not changed.
      string(REGEX REPLACE "^(1f8b08..)........" "\\100000000" bytes "${bytes}")
    endif()
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND arrays "  static constexpr unsigned char k${number}[] = {${bytes}};\n")
    string(APPEND entries "      {\"${base}\", {reinterpret_cast<const char*>(k${number}), sizeof k${number}}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "// Made by curtail_embed().
#include <span>

#include \"curtail/base/embedded_file.h\"

namespace ${namespace} {

std::span<const ::curtail::EmbeddedFile> ${name}();
std::span<const ::curtail::EmbeddedFile> ${name}() {
${arrays}  static const ::curtail::EmbeddedFile files[] = {
${entries}  };
  return files;
}

}  // namespace ${namespace}
")
endfunction()
