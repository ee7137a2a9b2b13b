# find_package(graft): the target graft::graft (graft/graft.h), which compiles what uses it as C++20 or later.
if(NOT "cxx_std_20" IN_LIST CMAKE_CXX_COMPILE_FEATURES)
  set(graft_FOUND FALSE)
  set(graft_NOT_FOUND_MESSAGE "graft/graft.h needs C++20, which ${CMAKE_CXX_COMPILER} does not know (or CXX is not enabled)")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/graftTargets.cmake)
