# The shared library without a Swift runtime, in the language mode "Embedded Swift": it needs no
# more than a library written in C.
#
# In this mode a noncopyable type can only be destroyed by its own module. So Wire, Documents,
# Session, Engine and RealtimeABI are compiled as one module; the modules that their files import
# exist, but are empty. Sources/Embedded has what the mode lacks or would write out too often.
#
# can_be_embedded says whether the toolchain supports it.
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

set(embedded_flags
    -target ${swift_triple} -swift-version 6 -parse-as-library -wmo -O
    -Xfrontend -function-sections
    -enable-experimental-feature Embedded -enable-experimental-feature RawLayout
    -enable-builtin-module -enable-upcoming-feature ExistentialAny
    -enable-upcoming-feature InternalImportsByDefault
    -enable-upcoming-feature MemberImportVisibility
    -package-name librealtime -suppress-warnings)

function(add_embedded_library target)
  set(folder ${PROJECT_BINARY_DIR}/embedded)
  set(overlay ${PROJECT_SOURCE_DIR}/Sources/Embedded)

  set(modules)
  foreach(module Wire Documents Session Engine)
    file(WRITE ${folder}/${module}.swift "")
    add_custom_command(
      OUTPUT ${folder}/${module}.swiftmodule
      COMMAND ${SWIFTC_EXECUTABLE} ${embedded_flags} -module-name ${module} -emit-module
              -emit-module-path ${folder}/${module}.swiftmodule ${folder}/${module}.swift
      VERBATIM)
    list(APPEND modules ${folder}/${module}.swiftmodule)
  endforeach()

  # Files of one module must have different names, so each gets its old module's name as a prefix.
  file(MAKE_DIRECTORY ${folder}/sources)
  set(links)
  set(sources)
  foreach(module Wire Documents Session Engine RealtimeABI Embedded)
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

  file(GLOB headers CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/Sources/CShims/include/*.h ${overlay}/C/*)
  file(WRITE ${folder}/include/module.modulemap
       "module CShims { umbrella \"${PROJECT_SOURCE_DIR}/Sources/CShims/include\" export * }\n")
  add_custom_command(
    OUTPUT ${folder}/realtime.o
    COMMAND ${SWIFTC_EXECUTABLE} ${embedded_flags} -module-name RealtimeABI -g
            -Xcc -I${overlay}/C -Xcc -I${folder}/include
            -Xcc -I${PROJECT_SOURCE_DIR}/Sources/CShims/include
            # Otherwise the inline C of the headers makes the compiler write unwind tables for all
            # code, a tenth of the library. Nothing here unwinds; debuggers use .debug_frame.
            -Xcc -fno-asynchronous-unwind-tables -Xcc -fno-unwind-tables
            -Xcc -ffunction-sections -I ${folder}
            # The mode checks no exclusivity while the library runs; so the compiler need not
            # prepare for it.
            -enforce-exclusivity=unchecked
            # Inlined into 13,000 places, these would add 0.27 MB.
            -Xllvm -force-attribute=swift_retain:noinline
            -Xllvm -force-attribute=swift_bridgeObjectRetain:noinline
            -Xllvm -force-attribute=swift_once:noinline
            ${links} -c -o ${folder}/realtime.o
    DEPENDS ${sources} ${headers} ${modules}
    COMMENT "Compiling Swift without a runtime (a minute)" VERBATIM)

  file(GLOB c_sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/Sources/CShims/*.c ${overlay}/*.c)
  add_library(${target} SHARED ${c_sources} ${folder}/realtime.o)
  set_source_files_properties(${folder}/realtime.o PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/Sources/CShims/include ${overlay}/C)
  target_compile_options(${target} PRIVATE
    -O2 -g -fvisibility=hidden -ffunction-sections -fdata-sections)
  target_link_options(${target} PRIVATE
    -fuse-ld=lld -B${swift_tools} -Wl,--gc-sections -Wl,--icf=all)
  target_link_libraries(${target} PRIVATE curl z crypto ssl pthread m dl ${unicode_data})
endfunction()
