/* vgasnet: the version of the interface, its configuration, and its limits. See vgasnet.h for the conventions. */
#ifndef VGASNET_VERSION_H
#define VGASNET_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. */
#define VGASNET_VERSION_MAJOR 0
#define VGASNET_VERSION_MINOR 1
#define VGASNET_VERSION_PATCH 0
#define VGASNET_RELEASE_VERSION_MAJOR VGASNET_VERSION_MAJOR
#define VGASNET_RELEASE_VERSION_MINOR VGASNET_VERSION_MINOR
#define VGASNET_RELEASE_VERSION_PATCH VGASNET_VERSION_PATCH

/** The version of GASNet's specification that defines this interface. */
#define VGASNET_SPEC_VERSION_MAJOR 1
#define VGASNET_SPEC_VERSION_MINOR 8

/**
 * The configuration of this header. The library contains the same string, between "$GASNetConfig: (libvgasnet) " and
 * " $", so that tools find it in a program that is linked statically. It names no thread mode, because every thread may
 * call; a client of GASNet has its own in GASNET_CONFIG_STRING.
 */
#define VGASNET_CONFIG_STRING "VGASNET=0.1.0,SPEC=1.8,SEGMENT=LARGE,ALIGNED_SEGMENTS=0,PTR=64bit"

/**
 * Returns the configuration of the library: its version, specification and segment mode.
 *
 * May be called at any time, also before vgasnet_init, by any thread. Never fails.
 *
 * @return VGASNET_CONFIG_STRING of the library, a constant. It differs from the macro if the program was compiled with
 *     the header of another version.
 * @see VGASNET_CONFIG_STRING
 */
const char *vgasnet_config_string(void);

/** The largest number of ranks in a job. */
#define VGASNET_MAXNODES 1048576

/**
 * Segment sizes and bases are multiples of this. In fact they are multiples of the page size, which the environment
 * variable VGASNET_PAGE_SIZE sets: 4 MiB by default, from 4 KiB (or the system's page if that is larger) to 64 MiB. Any
 * size is rounded up to whole pages.
 */
#define VGASNET_PAGESIZE 4096

/** Segments may be larger than memory. The first access to a page outside memory is slow. */
#define VGASNET_SEGMENT_LARGE 1

/**
 * Whether equal bases on all ranks are promised. The bases are equal if all ranks have a range of addresses in common.
 * Under tools that take most of the address space they may have none, and vgasnet_attach succeeds with different bases.
 * So ask vgasnet_getSegmentInfo.
 */
#define VGASNET_ALIGNED_SEGMENTS 0

/** vgasnet_init accepts null pointers: vgasnet_init(NULL, NULL). */
#define VGASNET_NULL_ARGV_OK 1

#ifdef __cplusplus
}
#endif

#endif
