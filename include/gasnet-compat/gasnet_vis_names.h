/* GASNet-1's names of vector, indexed and strided transfers. Clients include gasnet_vis.h. */
#ifndef GASNET_VIS_NAMES_H
#define GASNET_VIS_NAMES_H

#include <vgasnet/lists.h>

typedef vgasnet_memvec_t gasnet_memvec_t;

/**
 * Writes regions of any lengths to a rank's segment, and returns when no rank can read the old bytes any more.
 * @see vgasnet_putv_bulk
 */
#define gasnet_putv_bulk vgasnet_putv_bulk
/** Reads regions of any lengths from a rank's segment, and returns when all have arrived. @see vgasnet_getv_bulk */
#define gasnet_getv_bulk vgasnet_getv_bulk
/** Starts to write regions of any lengths to a rank's segment, with one handle for all. @see vgasnet_putv_nb_bulk */
#define gasnet_putv_nb_bulk vgasnet_putv_nb_bulk
/** Starts to read regions of any lengths from a rank's segment, with one handle for all. @see vgasnet_getv_nb_bulk */
#define gasnet_getv_nb_bulk vgasnet_getv_nb_bulk
/** Starts to write regions of any lengths to a rank's segment, without a handle. @see vgasnet_putv_nbi_bulk */
#define gasnet_putv_nbi_bulk vgasnet_putv_nbi_bulk
/** Starts to read regions of any lengths from a rank's segment, without a handle. @see vgasnet_getv_nbi_bulk */
#define gasnet_getv_nbi_bulk vgasnet_getv_nbi_bulk
/**
 * Writes regions of equal length to a rank's segment, and returns when no rank can read the old bytes any more.
 * @see vgasnet_puti_bulk
 */
#define gasnet_puti_bulk vgasnet_puti_bulk
/** Reads regions of equal length from a rank's segment, and returns when all have arrived. @see vgasnet_geti_bulk */
#define gasnet_geti_bulk vgasnet_geti_bulk
/** Starts to write regions of equal length to a rank's segment, with one handle for all. @see vgasnet_puti_nb_bulk */
#define gasnet_puti_nb_bulk vgasnet_puti_nb_bulk
/** Starts to read regions of equal length from a rank's segment, with one handle for all. @see vgasnet_geti_nb_bulk */
#define gasnet_geti_nb_bulk vgasnet_geti_nb_bulk
/** Starts to write regions of equal length to a rank's segment, without a handle. @see vgasnet_puti_nbi_bulk */
#define gasnet_puti_nbi_bulk vgasnet_puti_nbi_bulk
/** Starts to read regions of equal length from a rank's segment, without a handle. @see vgasnet_geti_nbi_bulk */
#define gasnet_geti_nbi_bulk vgasnet_geti_nbi_bulk
/**
 * Writes regions at regular distances to a rank's segment, and returns when no rank can read the old bytes any more.
 * @see vgasnet_puts_bulk
 */
#define gasnet_puts_bulk vgasnet_puts_bulk
/**
 * Reads regions at regular distances from a rank's segment, and returns when all have arrived.
 * @see vgasnet_gets_bulk
 */
#define gasnet_gets_bulk vgasnet_gets_bulk
/**
 * Starts to write regions at regular distances to a rank's segment, with one handle for all.
 * @see vgasnet_puts_nb_bulk
 */
#define gasnet_puts_nb_bulk vgasnet_puts_nb_bulk
/**
 * Starts to read regions at regular distances from a rank's segment, with one handle for all.
 * @see vgasnet_gets_nb_bulk
 */
#define gasnet_gets_nb_bulk vgasnet_gets_nb_bulk
/** Starts to write regions at regular distances to a rank's segment, without a handle. @see vgasnet_puts_nbi_bulk */
#define gasnet_puts_nbi_bulk vgasnet_puts_nbi_bulk
/** Starts to read regions at regular distances from a rank's segment, without a handle. @see vgasnet_gets_nbi_bulk */
#define gasnet_gets_nbi_bulk vgasnet_gets_nbi_bulk

#endif
