# Read by cpack: what the .deb depends on, asked of dpkg-shlibdeps. Not by CPACK_DEBIAN_PACKAGE_SHLIBDEPS, which takes
# every file of the package alike: what a plug-in in lib/graft needs, which is loaded on demand, is suggested.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
set(work ${CPACK_GRAFT_BUILD}/_CPack_Packages/depends)
set(tree ${work}/debian/graft)
file(REMOVE_RECURSE ${work})
file(WRITE ${work}/debian/control "Source: graft\n\nPackage: graft\nArchitecture: any\n")
file(WRITE ${work}/debian/shlibs.local "libgraft ${CPACK_GRAFT_SOVERSION} graft\n")
# Installed, because programs in the build folder name the folders that libraries were linked from, which belong to other
# packages.
execute_process(COMMAND ${CMAKE_COMMAND} --install ${CPACK_GRAFT_BUILD} --prefix ${tree}/usr
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

file(GLOB needed ${tree}/usr/bin/* ${tree}/usr/lib/libgraft.so.*.*.* ${tree}/usr/lib/python3/dist-packages/graft/*.so)
file(GLOB plugins ${tree}/usr/lib/graft/*.so)
set(arguments "")
foreach(file IN LISTS needed)
  list(APPEND arguments -e${file})
endforeach()
if(plugins)
  list(APPEND arguments -dSuggests)
  foreach(file IN LISTS plugins)
    list(APPEND arguments -e${file})
  endforeach()
endif()
execute_process(COMMAND dpkg-shlibdeps -O --warnings=0 -xgraft -l${tree}/usr/lib ${arguments}
                WORKING_DIRECTORY ${work} OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${work})
string(REGEX MATCH "shlibs:Depends=([^\n]*)" line "${found}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS ${CMAKE_MATCH_1})
if(found MATCHES "shlibs:Suggests=([^\n]*)")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS ${CMAKE_MATCH_1})
endif()
if(CPACK_GRAFT_PYTHON)  # the module is for this Python alone, and is optional
  string(REPLACE . ";" version ${CPACK_GRAFT_PYTHON})
  list(GET version 1 minor)
  math(EXPR next "${minor} + 1")
  string(PREPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS
         "python3 (>= ${CPACK_GRAFT_PYTHON}~), python3 (<< 3.${next}), ")
endif()
