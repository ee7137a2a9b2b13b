# Debian 12 packages, each as one target that a room can name.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)          # 0.7 exports `yaml-cpp`
find_package(ZLIB REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(MPI REQUIRED COMPONENTS C)
find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)  # "19" alone is refused

# Debian's dnnl-config.cmake insists on OpenCL's headers, which its package does not bring and a CPU does not need.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES
  IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})

# Debian's xgboost-config.cmake insists on the command-line program, which is another package.
find_library(XGBOOST_LIBRARY xgboost REQUIRED)
find_path(XGBOOST_INCLUDE_DIR xgboost/c_api.h REQUIRED)
add_library(XGBoost::xgboost UNKNOWN IMPORTED)
set_target_properties(XGBoost::xgboost PROPERTIES
  IMPORTED_LOCATION ${XGBOOST_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${XGBOOST_INCLUDE_DIR})

# A seventh of code generation is glibc's allocation; with this allocator modelled programs take 8 % less time (6 to 11 in
# three runs each). For programs only: a sanitizer has an allocator of its own.
add_library(graft_allocator INTERFACE)
if(NOT GRAFT_SANITIZE)
  find_library(JEMALLOC_LIBRARY jemalloc REQUIRED)
  target_link_libraries(graft_allocator INTERFACE ${JEMALLOC_LIBRARY})
endif()

# Debian's libzip-config.cmake insists on libzip's tools, which are another package.
find_library(ZIP_LIBRARY zip REQUIRED)
add_library(graft_zip_package INTERFACE)
target_link_libraries(graft_zip_package INTERFACE ${ZIP_LIBRARY})

add_library(graft_hdf5_package INTERFACE)
target_include_directories(graft_hdf5_package SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_compile_definitions(graft_hdf5_package INTERFACE ${HDF5_C_DEFINITIONS})
target_link_libraries(graft_hdf5_package INTERFACE ${HDF5_C_LIBRARIES})

# lld comes without CMake files in Debian: static driver libraries over the shared LLVM.
add_library(graft_llvm_package INTERFACE)
target_include_directories(graft_llvm_package SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_directories(graft_llvm_package INTERFACE ${LLVM_LIBRARY_DIRS})
target_link_libraries(graft_llvm_package INTERFACE lldELF lldCommon LLVM-19 z zstd)
