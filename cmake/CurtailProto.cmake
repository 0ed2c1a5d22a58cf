# curtail_proto(TARGET PROTOS a.proto ... [LIBS lib ...] [IMPORT_DIRS dir ...] [MESSAGES_ONLY])
#
# A static library with what protoc writes for the files: the messages (a.pb.h) and the service bases and stubs
# (a.curtail.h), included by the files' paths below the folder of the calling CMakeLists.txt.
#   LIBS           libraries whose messages the files import, and what else the users of TARGET shall link
#   IMPORT_DIRS    further folders to find imports in
#   MESSAGES_ONLY  no a.curtail.h, and TARGET does not link the runtime
# Works the same inside curtail's own tree and after find_package(curtail).
function(curtail_proto target)
  cmake_parse_arguments(ARG "MESSAGES_ONLY" "" "PROTOS;LIBS;IMPORT_DIRS" ${ARGN})
  if(NOT ARG_PROTOS OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "curtail_proto(${target}): usage: curtail_proto(TARGET PROTOS a.proto ... [LIBS ...] "
                        "[IMPORT_DIRS ...] [MESSAGES_ONLY]), but got \"${ARGN}\"")
  endif()
  set(messages_only)
  if(ARG_MESSAGES_ONLY)
    set(messages_only MESSAGES_ONLY)
  else()
    list(APPEND ARG_LIBS curtail::rpc)
  endif()
  curtail_proto_sources(generated ROOT ${CMAKE_CURRENT_SOURCE_DIR} PROTOS ${ARG_PROTOS}
    IMPORT_DIRS ${ARG_IMPORT_DIRS} ${messages_only})

  add_library(${target} STATIC ${generated})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/gen>)
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf ${ARG_LIBS})
  if(TARGET curtail_options)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:curtail_options>)
    curtail_unoptimised(${target})
  endif()
endfunction()

# curtail_proto_sources(VARIABLE ROOT folder PROTOS a.proto ... [IMPORT_DIRS dir ...] [MESSAGES_ONLY])
#
# Sets VARIABLE to the sources that protoc writes for the files, which lie below ROOT. A target of the calling folder
# compiles them; includes are found in ${CMAKE_CURRENT_BINARY_DIR}/gen, by the files' paths below ROOT.
function(curtail_proto_sources variable)
  cmake_parse_arguments(ARG "MESSAGES_ONLY" "ROOT" "PROTOS;IMPORT_DIRS" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/gen)
  set(imports)
  foreach(dir ${ARG_ROOT} ${ARG_IMPORT_DIRS})
    get_filename_component(dir ${dir} ABSOLUTE)
    list(APPEND imports -I ${dir})
  endforeach()

  # In the order of protoc's dependency file: ninja wants its first output to be the first there.
  set(extensions .pb.cc .pb.h)
  set(plugin)
  set(plugin_target)
  if(NOT ARG_MESSAGES_ONLY)
    list(PREPEND extensions .curtail.cc .curtail.h)
    set(plugin --plugin=protoc-gen-curtail=$<TARGET_FILE:curtail::protoc-gen-curtail> --curtail_out=${out})
    set(plugin_target curtail::protoc-gen-curtail)
  endif()

  set(generated)
  foreach(proto ${ARG_PROTOS})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    get_filename_component(folder ${out}/${stem} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    list(TRANSFORM extensions PREPEND ${out}/${stem} OUTPUT_VARIABLE files)
    add_custom_command(OUTPUT ${files}
      COMMAND protobuf::protoc ${imports} --cpp_out=${out} ${plugin} --dependency_out=${out}/${stem}.d
              ${ARG_ROOT}/${proto}
      DEPENDS ${ARG_ROOT}/${proto} ${plugin_target}
      DEPFILE ${out}/${stem}.d
      COMMENT "Generating C++ from ${proto}" VERBATIM)
    list(APPEND generated ${files})
    # In a unity build the files of one .proto go together: protoc gives those of several the same names inside.
    set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${stem})
  endforeach()
  set(${variable} ${generated} PARENT_SCOPE)
endfunction()
