# Packages:
#   cpack --config build/release/CPackConfig.cmake -G DEB          one .deb of the build
#   cpack --config build/release/CPackSourceConfig.cmake -G TGZ    the sources
find_program(GZIP gzip)
if(GZIP)
  set(manual ${PROJECT_BINARY_DIR}/share/man/man1/graft.1.gz)
  add_custom_command(OUTPUT ${manual}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/share/man/man1
    COMMAND sh -c "${PROJECT_SOURCE_DIR}/scripts/man-page $<TARGET_FILE:graft> > graft.1 && ${GZIP} -9nf graft.1"
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/share/man/man1
    DEPENDS graft graft-bench ${PROJECT_SOURCE_DIR}/scripts/man-page VERBATIM)  # graft help asks graft-bench of its own
  add_custom_target(graft_manual ALL DEPENDS ${manual})
  install(FILES ${manual} DESTINATION share/man/man1)
endif()
# Where Debian's shells look for completions.
set(completions)
foreach(place bash:share/bash-completion/completions/graft zsh:share/zsh/vendor-completions/_graft
              fish:share/fish/vendor_completions.d/graft.fish)
  string(REPLACE ":" ";" place ${place})
  list(GET place 0 shell)
  list(GET place 1 file)
  cmake_path(GET file PARENT_PATH folder)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/${folder}
    COMMAND sh -c "$<TARGET_FILE:graft> completion ${shell} > ${PROJECT_BINARY_DIR}/${file}"
    DEPENDS graft graft-bench VERBATIM)
  list(APPEND completions ${PROJECT_BINARY_DIR}/${file})
  install(FILES ${PROJECT_BINARY_DIR}/${file} DESTINATION ${folder})
endforeach()
add_custom_target(graft_completions ALL DEPENDS ${completions})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/graft RENAME copyright)

set(CPACK_PACKAGE_NAME graft)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR graft)
set(CPACK_PACKAGE_CONTACT "the graft authors <graft@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tunes tensor programs with a cost model that moves to new hardware")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# For kernels in Python: numpy, and a C compiler that links them. The modelled platforms' results are checked by qemu.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-numpy, gcc, qemu-user")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_depends.cmake)
set(CPACK_GRAFT_BUILD ${PROJECT_BINARY_DIR})
get_target_property(CPACK_GRAFT_SOVERSION graft_library SOVERSION)
if(GRAFT_PYTHON)
  set(CPACK_GRAFT_PYTHON ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
endif()

set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME graft-${PROJECT_VERSION})
string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" here ${PROJECT_SOURCE_DIR})
set(CPACK_SOURCE_IGNORE_FILES ^${here}/build/ ^${here}/runs/ ^${here}/\\.git$ ^${here}/\\.git/ \\.swp$ \\.h5\\.run/
    __pycache__)
include(CPack)
