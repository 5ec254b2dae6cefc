# Builds the shared library without a Swift runtime, in Embedded Swift. The modules below the C
# interface are compiled as one module, because in this mode a noncopyable value can only be
# destroyed in the module of its type. The modules that they import exist, but are empty.
#
# Sets can_be_embedded: whether the toolchain supports this mode.
execute_process(
  COMMAND ${SWIFTC_EXECUTABLE} -print-target-info
  OUTPUT_VARIABLE target_info COMMAND_ERROR_IS_FATAL ANY)
string(JSON swift_resources GET "${target_info}" paths runtimeResourcePath)
string(JSON swift_triple GET "${target_info}" target triple)
set(unicode_data ${swift_resources}/embedded/${swift_triple}/libswiftUnicodeDataTables.a)
set(can_be_embedded OFF)
if(EXISTS ${unicode_data})
  set(can_be_embedded ON)
endif()
get_filename_component(swift_tools ${SWIFTC_EXECUTABLE} REALPATH)
get_filename_component(swift_tools ${swift_tools} DIRECTORY)

function(add_embedded_library target)
  set(folder ${PROJECT_BINARY_DIR}/embedded)
  set(overlay ${PROJECT_SOURCE_DIR}/Sources/Embedded)
  set(flags
      -target ${swift_triple} -swift-version 6 -parse-as-library -wmo -O
      -Xfrontend -function-sections
      -enable-experimental-feature Embedded -enable-experimental-feature RawLayout
      -enable-builtin-module -enable-upcoming-feature ExistentialAny
      -enable-upcoming-feature InternalImportsByDefault
      -enable-upcoming-feature MemberImportVisibility
      -package-name librealtime -suppress-warnings)

  set(modules)
  foreach(module Wire Session Engine)
    file(WRITE ${folder}/${module}.swift "")
    add_custom_command(
      OUTPUT ${folder}/${module}.swiftmodule
      COMMAND ${SWIFTC_EXECUTABLE} ${flags} -module-name ${module} -emit-module
              -emit-module-path ${folder}/${module}.swiftmodule ${folder}/${module}.swift
      VERBATIM)
    list(APPEND modules ${folder}/${module}.swiftmodule)
  endforeach()

  # Files of one module must have different names, so each gets its old module's name as a prefix.
  file(MAKE_DIRECTORY ${folder}/sources)
  set(links)
  set(sources)
  foreach(module Wire Session Engine RealtimeABI Embedded)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS
         ${PROJECT_SOURCE_DIR}/Sources/${module}/*.swift)
    foreach(file ${files})
      get_filename_component(name ${file} NAME)
      set(link ${folder}/sources/${module}-${name})
      file(CREATE_LINK ${file} ${link} SYMBOLIC)
      list(APPEND links ${link})
      list(APPEND sources ${file})
    endforeach()
  endforeach()

  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/Sources/CShims/include/*.h)
  file(WRITE ${folder}/include/module.modulemap
       "module CShims { umbrella \"${PROJECT_SOURCE_DIR}/Sources/CShims/include\" export * }\n")
  add_custom_command(
    OUTPUT ${folder}/realtime.o
    COMMAND ${SWIFTC_EXECUTABLE} ${flags} -module-name RealtimeABI -g
            -Xcc -I${overlay}/Glibc -Xcc -I${folder}/include
            -Xcc -I${PROJECT_SOURCE_DIR}/Sources/CShims/include
            -Xcc -ffunction-sections -I ${folder}
            ${links} -c -o ${folder}/realtime.o
    DEPENDS ${sources} ${headers} ${modules} ${overlay}/Glibc/glibc.h
    COMMENT "Compiling Swift without a runtime (a minute)" VERBATIM)

  file(GLOB shims CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/Sources/CShims/*.c)
  add_library(${target} SHARED ${shims} ${folder}/realtime.o)
  set_source_files_properties(${folder}/realtime.o PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/Sources/CShims/include)
  target_compile_options(${target} PRIVATE
    -O2 -g -fvisibility=hidden -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE
    -fuse-ld=lld -B${swift_tools} -Wl,--gc-sections -Wl,--icf=all -Wl,-z,pack-relative-relocs)
  target_link_libraries(${target} PRIVATE curl z crypto ssl pthread m dl ${unicode_data})
endfunction()
