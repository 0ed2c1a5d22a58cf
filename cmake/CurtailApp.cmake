# curtail_app(NAME PROTOS a.proto ... SERVICES a.cc ... | SERVICE_FOLDER folder
#             [CORE a.cc ...] [WORKLOAD a.cc ...] [COMMANDS a.cc ...] [KIT part ...] [LIBS lib ...] [HTTP] [PAGE])
#
# An application: the program NAME, which serves any of its services, from main.cc. With a SERVICE_FOLDER that file may be
# missing: every source there, compose-post.cc, defines curtail::HostedService curtail::NAME::HostedComposePost(), and the
# program is made of them and topology.yaml's title.
#   CORE      sources that know no RPC: the library NAME_core, optimised in every build, most without a sanitizer
#   PROTOS    the messages and services: NAME_proto
#   SERVICES  a source a service: NAME_services
#   WORKLOAD  what the tools send, with curtail::NAME::Requests() (apps/kit/load/requests.h): NAME_workload
#   COMMANDS  sources of the program's own commands, with curtail::NAME::Commands(); for a main.cc that is missing
#   KIT       folders of apps/kit that have libraries of their own; the protos may import those of the parts
#   LIBS      what the core links privately
#   HTTP      the protos import google/api/annotations.proto
#   PAGE      the program has the files of web/dist/NAME: curtail::NAME::PageFiles() of page_files.h, which CMake writes
# Outside of curtail's own tree, after find_package(curtail), CORE, WORKLOAD and KIT are not there, the services link curtail::curtail,
# and PAGE is for the files of the folder page: NAME::PageFiles().
# Applications with a WORKLOAD and a topology.yaml that are declared before tools/curtail are part of the command, and of an
# installation.
function(curtail_app name)
  cmake_parse_arguments(ARG "HTTP;PAGE" "SERVICE_FOLDER" "CORE;PROTOS;SERVICES;WORKLOAD;COMMANDS;KIT;LIBS" ${ARGN})
  set(main main.cc)
  if(ARG_SERVICE_FOLDER)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SERVICE_FOLDER}/*.cc)
    list(APPEND ARG_SERVICES ${found})
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/main.cc)
      set(main ${CMAKE_CURRENT_BINARY_DIR}/main.cc)
      set(commands)
      if(ARG_COMMANDS)
        set(commands TRUE)
      endif()
      set(services ${CMAKE_CURRENT_BINARY_DIR}/hosted_services.cc)
      set(namespace ${name})  # as of its .proto
      if(TARGET apps_kit)
        set(namespace curtail::${name})
      endif()
      curtail_write_main(${name} ${namespace} ${main} ${services} "${commands}" ${found})
      list(APPEND ARG_SERVICES ${services})
    endif()
  endif()
  if(NOT ARG_SERVICES OR NOT ARG_PROTOS OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "curtail_app(${name}): wants PROTOS and SERVICES, but got \"${ARGN}\"")
  endif()
  set(libs)
  set(imports)
  if(ARG_HTTP)
    list(APPEND libs curtail::http_annotations)
    foreach(folder ../curtail/gateway ../../../share/curtail/proto)  # of the tree, of an installation
      if(EXISTS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${folder}/google)
        list(APPEND imports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${folder})
      endif()
    endforeach()
  endif()
  if(NOT TARGET apps_kit)
    curtail_own_app(${name})
    return()
  endif()
  foreach(part ${ARG_KIT})
    curtail_kit(${part})
    if(TARGET apps_${part}_proto)
      list(APPEND libs apps_${part}_proto)
      list(APPEND imports ${PROJECT_SOURCE_DIR}/apps/kit/${part})
    endif()
  endforeach()
  list(TRANSFORM ARG_KIT PREPEND apps_)
  curtail_proto(${name}_proto PROTOS ${ARG_PROTOS} LIBS ${libs} IMPORT_DIRS ${imports})
  set(below ${name}_proto)
  if(ARG_CORE)
    add_library(${name}_core STATIC ${ARG_CORE})
    target_include_directories(${name}_core PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
    target_link_libraries(${name}_core PUBLIC apps_kit PRIVATE absl::strings ${ARG_LIBS} curtail_options)
    curtail_large_batches(${name}_core)
    if(NOT CURTAIL_SANITIZE)
      target_compile_options(${name}_core PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
    endif()
    list(APPEND below ${name}_core)
  endif()
  add_library(${name}_services STATIC ${ARG_SERVICES})
  target_include_directories(${name}_services PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name}_services PUBLIC apps_kit ${below} ${ARG_KIT} PRIVATE absl::strings ${ARG_LIBS} curtail_options)
  curtail_service_options(${name}_services)
  if(ARG_PAGE)
    curtail_page_files(${name}_services curtail::${name} ${PROJECT_SOURCE_DIR}/web/dist/${name})
    target_link_libraries(${name}_services PRIVATE curtail_page)
  endif()
  curtail_executable(${name} SOURCES ${main} ${ARG_COMMANDS} LIBS ${name}_services)
  target_link_libraries(${name} PRIVATE absl::strings)
  if(ARG_WORKLOAD)
    add_library(${name}_workload STATIC ${ARG_WORKLOAD})
    target_link_libraries(${name}_workload PUBLIC apps_requests ${below} PRIVATE absl::strings curtail_options)
    curtail_unoptimised(${name}_workload)
    set_property(GLOBAL APPEND PROPERTY CURTAIL_DECLARED_APPS ${name})
    set_property(GLOBAL PROPERTY CURTAIL_APP_TOPOLOGY_${name} ${CMAKE_CURRENT_SOURCE_DIR}/topology.yaml)
    # Where the installed command looks for it. The topology is a copy to begin one's own with; the command has its own.
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/curtail)
    install(FILES topology.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/curtail/${name})
  endif()
endfunction()

# The rest of curtail_app() for an application outside of curtail's tree, in the variables of that.
macro(curtail_own_app name)
  foreach(part CORE WORKLOAD KIT)
    if(ARG_${part})
      message(FATAL_ERROR "curtail_app(${name}): ${part} is for applications in curtail's own tree")
    endif()
  endforeach()
  curtail_proto(${name}_proto PROTOS ${ARG_PROTOS} LIBS ${libs} IMPORT_DIRS ${imports})
  add_executable(${name} ${main} ${ARG_COMMANDS} ${ARG_SERVICES})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${name}_proto curtail::curtail ${ARG_LIBS})
  if(ARG_PAGE)
    curtail_page_files(${name} ${name} ${CMAKE_CURRENT_SOURCE_DIR}/page)
    target_link_libraries(${name} PRIVATE curtail::page)
  endif()
endmacro()

# curtail_page_files(TARGET NAMESPACE FOLDER): TARGET has NAMESPACE::PageFiles() of page_files.h over the files of a folder.
function(curtail_page_files target namespace folder)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/page_files.cc)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*)
  curtail_embed(${source} ${namespace}::PageFiles ${files})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/page_files.h @ONLY CONTENT [[
// Made by CMake.
#pragma once

#include <span>

#include "curtail/base/embedded_file.h"

namespace @namespace@ {

std::span<const ::curtail::EmbeddedFile> PageFiles();

}  // namespace @namespace@
]])
  target_sources(${target} PRIVATE ${source})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

# curtail_kit(PART): the library apps_PART of apps/kit/PART, which needs packages that not every application has.
function(curtail_kit part)
  if(NOT TARGET apps_${part})
    add_subdirectory(${PROJECT_SOURCE_DIR}/apps/kit/${part} ${PROJECT_BINARY_DIR}/apps/kit/${part})
  endif()
endfunction()

# curtail_intrinsics(SOURCE...): sources over the compiler's own headers of intrinsics, in which GCC 12 sees variables
# that were not set (PR 105593).
function(curtail_intrinsics)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")
  endif()
endfunction()

# curtail_write_main(NAME NAMESPACE MAIN SERVICES COMMANDS SOURCE...): writes the main() of an application over the services that the
# sources define, and in SERVICES beside it HostedServices(), their list. COMMANDS: true if they have Commands().
function(curtail_write_main name namespace main services commands)
  set(topology ${CMAKE_CURRENT_SOURCE_DIR}/topology.yaml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${topology})
  file(STRINGS ${topology} title REGEX "^title: ")
  string(REGEX REPLACE "^title: *" "" title "${title}")
  string(REPLACE "\\;" ";" title "${title}")  # file(STRINGS) escapes them
  set(declarations)
  set(entries)
  set(command_declaration)
  if(commands)
    set(command_declaration "std::vector<curtail::HostCommand> Commands();\n")
    set(commands "${namespace}::Commands()")
  endif()
  foreach(source ${ARGN})
    get_filename_component(stem ${source} NAME_WE)
    string(REGEX MATCHALL "[^-_]+" words ${stem})
    set(function Hosted)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND function ${first}${rest})
    endforeach()
    string(APPEND declarations "curtail::HostedService ${function}();\n")
    string(APPEND entries "          ${function}(),\n")
  endforeach()
  file(CONFIGURE OUTPUT ${services} CONTENT [[
// Made by CMake from the folder of services.
#include <vector>

#include "curtail/rpc/host.h"

namespace @namespace@ {
@declarations@
std::vector<curtail::HostedService> HostedServices() {
  return {
@entries@  };
}

}  // namespace @namespace@
]] @ONLY)
  file(CONFIGURE OUTPUT ${main} CONTENT [[
// Made by CMake from the folder of services.
#include "curtail/rpc/host.h"

namespace @namespace@ {
@command_declaration@std::vector<curtail::HostedService> HostedServices();
}  // namespace @namespace@

int main(int argc, char** argv) {
  return curtail::HostMain(argc, argv,
                           {.name = "@name@",
                            .title = R"title(@title@)title",
                            .examples = "Examples:\n  @name@ --monolith --listen 127.0.0.1:7000 --config FIB1",
                            .services = @namespace@::HostedServices(),
                            .commands = {@commands@}});
}
]] @ONLY)
endfunction()

# curtail_languages(NAME LANGUAGE...): the services of this folder's lang/LANGUAGE as the program NAME-LANGUAGE, where `curtail up` looks
# for it: targets NAME_LANGUAGE, which are built by name only. LANGUAGE is go, java, node or python.
function(curtail_languages name)
  foreach(language ${ARGN})
    add_custom_target(${name}_${language}
      COMMAND ${PROJECT_SOURCE_DIR}/apps/kit/lang/build ${language} ${CMAKE_CURRENT_SOURCE_DIR} ${name}
              ${PROJECT_BINARY_DIR}/apps/${name}-${language}
      VERBATIM)
  endforeach()
endfunction()
