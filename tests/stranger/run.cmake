# Builds and runs the project next to this file like a stranger with a build folder of graft or an installation:
#   cmake -D BUILD=FOLDER -D WORK=FOLDER -D GUIDE=FILE [-D INSTALL=1] [-D FLAGS=...] -D GENERATOR=... -D C_COMPILER=...
#         -D CXX_COMPILER=... -P run.cmake
# INSTALL: with an installation that was moved after it was made. What the guide shows must be in the project.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(check_that_the_project_holds_what_the_guide_shows)
  set(project "")
  foreach(file CMakeLists.txt main.cpp use.c)
    file(READ ${CMAKE_CURRENT_LIST_DIR}/${file} text)
    string(APPEND project "${text}")
  endforeach()
  file(READ ${GUIDE} guide)
  foreach(language cmake cpp c)
    string(FIND "${guide}" "```${language}\n" begin)
    if(begin EQUAL -1)
      message(FATAL_ERROR "${GUIDE}: shows no ${language}")
    endif()
    string(SUBSTRING "${guide}" ${begin} -1 rest)
    string(REGEX REPLACE "^```${language}\n" "" rest "${rest}")
    string(FIND "${rest}" "```" end)
    string(SUBSTRING "${rest}" 0 ${end} shown)
    string(FIND "${project}" "${shown}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${GUIDE}: its ${language} is not that of ${CMAKE_CURRENT_LIST_DIR}; copy it from there")
    endif()
  endforeach()
endfunction()

check_that_the_project_holds_what_the_guide_shows()
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(graft ${BUILD})
if(INSTALL)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/made)
  file(RENAME ${WORK}/made ${WORK}/moved)
  set(graft ${WORK}/moved)
  run(${graft}/bin/graft doctor)
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Release
    -D graft_DIR=${graft}/lib/cmake/graft -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
    -D CMAKE_C_FLAGS=${FLAGS} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/use_kernel)

# Without CMake, and as a program that asks for less than graft.h needs.
find_program(pkg_config NAMES pkg-config pkgconf)
if(pkg_config)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${graft}/lib/pkgconfig ${pkg_config} --cflags --libs graft
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags} ${FLAGS}")
  run(${CXX_COMPILER} ${CMAKE_CURRENT_LIST_DIR}/main.cpp ${flags} -o ${WORK}/by_pkg_config)
  execute_process(COMMAND ${CXX_COMPILER} -fsyntax-only ${flags} -std=c++17 ${CMAKE_CURRENT_LIST_DIR}/main.cpp
                  ERROR_VARIABLE said RESULT_VARIABLE refused)
  if(NOT refused OR NOT said MATCHES "graft/graft.h needs C\\+\\+20")
    message(FATAL_ERROR "as C++17: ${said}")
  endif()
else()
  message(STATUS "pkg-config is not here: graft.pc is not tried")
endif()
file(REMOVE_RECURSE ${WORK})
