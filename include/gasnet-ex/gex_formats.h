/* GASNet-EX's tools that show lists of regions and strides, for messages: at most so many entries of each. Clients include
 * gasnetex.h, then gasnet_tools.h. */
#ifndef GEX_FORMATS_H
#define GEX_FORMATS_H

#include "gasnet_toolkit.h"
#include "gex_types.h"

GASNETT_BEGIN_EXTERNC

enum { GASNETT_SHOWN_MAX_ = 16, GASNETT_SHOWN_ENTRY_BYTES_ = 48, GASNETT_SHOWN_HEAD_BYTES_ = 160 };

#define GASNETT_SHOWN_(count) ((count) < GASNETT_SHOWN_MAX_ ? (count) : (size_t)GASNETT_SHOWN_MAX_)
/** Returns the room for gasnett_format_memveclist, in bytes. @see GASNet's README-tools */
#define gasnett_format_memveclist_bufsz(count) \
    (GASNETT_SHOWN_HEAD_BYTES_ + GASNETT_SHOWN_((size_t)(count)) * GASNETT_SHOWN_ENTRY_BYTES_)
/** Returns the room for gasnett_format_addrlist, in bytes. @see GASNet's README-tools */
#define gasnett_format_addrlist_bufsz(count) gasnett_format_memveclist_bufsz(count)
/**
 * Returns the room for gasnett_format_putsgets, in bytes: for two lists of strides, and the counts.
 * @see GASNet's README-tools
 */
#define gasnett_format_putsgets_bufsz(levels) (4 * gasnett_format_memveclist_bufsz((size_t)(levels) + 1))

/**
 * Writes a list of regions as text, at most 16 of them. Returns the bytes written, the end included.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_format_memveclist)
size_t gasnett_format_memveclist(char *text, size_t count, gex_Memvec_t const *list) {
    size_t length = (size_t)sprintf(text, "%lu regions:", (unsigned long)count), i;
    for (i = 0; i < GASNETT_SHOWN_(count); ++i)
        length += (size_t)sprintf(text + length, " %p,%lu", list[i].gex_addr, (unsigned long)list[i].gex_len);
    return length + (size_t)sprintf(text + length, "%s", i < count ? " ..." : "") + 1;
}

/**
 * Writes a list of addresses as text, at most 16 of them. Returns the bytes written, the end included.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_format_addrlist)
size_t gasnett_format_addrlist(char *text, size_t count, void *const *list, size_t bytes) {
    size_t length = (size_t)sprintf(text, "%lu regions of %lu bytes:", (unsigned long)count, (unsigned long)bytes), i;
    for (i = 0; i < GASNETT_SHOWN_(count); ++i) length += (size_t)sprintf(text + length, " %p", list[i]);
    return length + (size_t)sprintf(text + length, "%s", i < count ? " ..." : "") + 1;
}

/**
 * Writes a strided transfer as text. nothing is null, in place of GASNet's statistics. Returns the bytes written.
 * @see GASNet's README-tools
 */
GASNETT_INLINE(gasnett_format_putsgets)
size_t gasnett_format_putsgets(char *text, void *nothing, gex_TM_t team, gex_Rank_t rank, void *to, const ptrdiff_t *to_strides,
                               void *from, const ptrdiff_t *from_strides, size_t bytes, const size_t *counts, size_t levels) {
    size_t length, i;
    (void)nothing;
    (void)team;
    length = (size_t)sprintf(text, "rank %lu, %p from %p, elements of %lu bytes, %lu levels:", (unsigned long)rank, to, from,
                             (unsigned long)bytes, (unsigned long)levels);
    for (i = 0; i < GASNETT_SHOWN_(levels); ++i)
        length += (size_t)sprintf(text + length, " %lu by %ld from %ld", (unsigned long)counts[i], (long)to_strides[i],
                                  (long)from_strides[i]);
    return length + (size_t)sprintf(text + length, "%s", i < levels ? " ..." : "") + 1;
}

GASNETT_END_EXTERNC

#endif
