# find_package(vgasnet) gives the targets vgasnet::vgasnet (shared) and vgasnet::static. Programs that include gasnet.h
# define GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR besides.
get_filename_component(vgasnet_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(vgasnet_LAUNCHER "${vgasnet_prefix}/bin/vgasnetrun")

if(NOT TARGET vgasnet::vgasnet)
  add_library(vgasnet::vgasnet SHARED IMPORTED)
  set_target_properties(vgasnet::vgasnet PROPERTIES
    IMPORTED_LOCATION "${vgasnet_prefix}/lib/libvgasnet.so"
    IMPORTED_SONAME "libvgasnet.so"
    INTERFACE_INCLUDE_DIRECTORIES "${vgasnet_prefix}/include")
  add_library(vgasnet::static STATIC IMPORTED)
  set_target_properties(vgasnet::static PROPERTIES
    IMPORTED_LOCATION "${vgasnet_prefix}/lib/libvgasnet.a"
    INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl"
    INTERFACE_INCLUDE_DIRECTORIES "${vgasnet_prefix}/include")
endif()
