# One static library per room (codegen has one per part). A room names what it may use, so that the layering is here to
# read: PUBLIC edges may appear in its headers, PRIVATE ones only in its .cpp files. tests/layers checks every #include
# against the same table.
#
#   graft_room(NAME DIRECTORIES dir... USES target... USES_PRIVATELY target... [OWN_PRECOMPILED])
function(graft_room name)
  cmake_parse_arguments(ARG "OWN_PRECOMPILED" "" "DIRECTORIES;USES;USES_PRIVATELY" ${ARGN})
  set(sources)
  foreach(directory IN LISTS ARG_DIRECTORIES)
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  if(NOT sources)  # a room that holds headers only
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_USES})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_USES} PRIVATE ${ARG_USES_PRIVATELY})
  graft_warnings(${name})
  if(ARG_OWN_PRECOMPILED OR NOT TARGET graft_base OR name STREQUAL graft_base)
    target_precompile_headers(${name} PRIVATE ${graft_precompiled})
  else()
    target_precompile_headers(${name} REUSE_FROM graft_base)
  endif()
endfunction()

# Headers of the standard library and of fmt that most files include: precompiled, because reading them takes a third of
# an average file's time. A file still includes what it uses: the presets `sanitize` and `fuzz` precompile nothing, so
# that a missing #include fails there. Rooms share what graft_base precompiles; a room whose compile options change
# these headers has OWN_PRECOMPILED, and so has a program (-fPIE).
set(graft_precompiled
  <algorithm> <array> <charconv> <cmath> <filesystem> <functional> <limits> <map> <memory> <numeric> <optional> <set>
  <span> <string> <string_view> <unordered_map> <utility> <vector> <fmt/format.h>)

# Options of code without loops of its own that take time (flows, commands, tests; in Release): the compiler's work after
# parsing is half of it. At -O1 g++ 12 sees uninitialised values where there are none.
set(graft_quickly_compiled $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# Warnings are errors in our own code, and only there (packages come in as SYSTEM includes). g++ 12 sees overlapping
# copies and impossible lengths in `"text" + std::string` (its bug 105651), hence those that are off.
function(graft_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
    -Werror)
  if(GRAFT_FUZZ)  # not vptr: packages come without type information that it could use
    target_compile_options(${target} PRIVATE -Wno-error)  # what Clang says of g++'s own headers
    set(sanitizers -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
    target_compile_options(${target} PUBLIC ${sanitizers})
    target_link_options(${target} PUBLIC ${sanitizers})
  endif()
  if(GRAFT_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=address,undefined -fno-sanitize-recover=all
                                            -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()
