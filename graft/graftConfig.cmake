# find_package(graft): the target graft::graft (graft/graft.h).
include(${CMAKE_CURRENT_LIST_DIR}/graftTargets.cmake)
