# curtail_proto(TARGET PROTOS a.proto ... [LIBS lib ...] [IMPORT_DIRS dir ...] [MESSAGES_ONLY])
#
# A static library with what protoc writes for the files: the messages (a.pb.h) and the service bases and stubs
# (a.curtail.h), included by the files' paths below the folder of the calling CMakeLists.txt, or below the import folder that
# has them. A file that is in none of these is included, and imported, by its name alone.
#   LIBS           libraries whose messages the files import, and what else the users of TARGET shall link
#   IMPORT_DIRS    further folders to find the files and their imports in
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
    curtail_service_options(${target})
  endif()
endfunction()

# Sets VARIABLE to the absolute path of a .proto: as it is, or below one of the folders.
function(curtail_find_proto variable proto dirs)
  set(tried)
  foreach(dir ${dirs})
    get_filename_component(path ${proto} ABSOLUTE BASE_DIR ${dir})
    get_source_file_property(made ${path} GENERATED)
    if(EXISTS ${path} OR made)
      set(${variable} ${path} PARENT_SCOPE)
      return()
    endif()
    list(APPEND tried ${path})
  endforeach()
  list(JOIN tried ", " tried)
  message(FATAL_ERROR "curtail_proto: there is no ${proto}, neither below this folder nor below one of IMPORT_DIRS: ${tried}. "
                      "Write its path from this folder, or an absolute one, or name its folder with IMPORT_DIRS")
endfunction()

# Sets VARIABLE to the name by which others import the .proto at `path`: its path below the first of the folders that has it.
function(curtail_name_of_proto variable path dirs)
  set(${variable} "" PARENT_SCOPE)
  foreach(dir ${dirs})
    file(RELATIVE_PATH name ${dir} ${path})
    if(NOT name MATCHES "^\\.\\./" AND NOT IS_ABSOLUTE "${name}")
      set(${variable} ${name} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# curtail_proto_sources(VARIABLE ROOT folder PROTOS a.proto ... [IMPORT_DIRS dir ...] [MESSAGES_ONLY])
#
# Sets VARIABLE to the sources that protoc writes for the files. A target of the calling folder compiles them; includes are found in
# ${CMAKE_CURRENT_BINARY_DIR}/gen, by the files' paths below ROOT or the import folder that has them.
function(curtail_proto_sources variable)
  cmake_parse_arguments(ARG "MESSAGES_ONLY" "ROOT" "PROTOS;IMPORT_DIRS" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/gen)
  set(dirs)
  foreach(dir ${ARG_ROOT} ${ARG_IMPORT_DIRS})
    get_filename_component(dir ${dir} ABSOLUTE)
    list(APPEND dirs ${dir})
  endforeach()
  set(imports)
  set(paths)
  foreach(proto ${ARG_PROTOS})
    curtail_find_proto(path ${proto} "${dirs}")
    # A file beside or above the folders is imported by its name.
    curtail_name_of_proto(name ${path} "${dirs}")
    if(NOT name)
      get_filename_component(folder ${path} DIRECTORY)
      list(APPEND dirs ${folder})
    endif()
    list(APPEND paths ${path})
  endforeach()
  list(REMOVE_DUPLICATES dirs)
  foreach(dir ${dirs})
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
  foreach(path ${paths})
    curtail_name_of_proto(proto ${path} "${dirs}")
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    get_filename_component(folder ${out}/${stem} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    list(TRANSFORM extensions PREPEND ${out}/${stem} OUTPUT_VARIABLE files)
    add_custom_command(OUTPUT ${files}
      COMMAND protobuf::protoc ${imports} --cpp_out=${out} ${plugin} --dependency_out=${out}/${stem}.d
              ${path}
      DEPENDS ${path} ${plugin_target}
      DEPFILE ${out}/${stem}.d
      COMMENT "Generating C++ from ${proto}" VERBATIM)
    list(APPEND generated ${files})
    # In a unity build the files of one .proto go together: protoc gives those of several the same names inside.
    set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${stem})
  endforeach()
  set(${variable} ${generated} PARENT_SCOPE)
endfunction()
