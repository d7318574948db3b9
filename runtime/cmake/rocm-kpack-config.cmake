# Defines rocm::rocm_kpack. This file is installed in lib/cmake/rocm-kpack below the prefix.
get_filename_component(_rocm_kpack_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET rocm::rocm_kpack)
  add_library(rocm::rocm_kpack SHARED IMPORTED)
  set_target_properties(rocm::rocm_kpack PROPERTIES
    IMPORTED_LOCATION "${_rocm_kpack_prefix}/lib/librocm_kpack.so.0"
    IMPORTED_SONAME "librocm_kpack.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_rocm_kpack_prefix}/include")
endif()
unset(_rocm_kpack_prefix)
