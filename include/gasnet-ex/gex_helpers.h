/* Helper macros that clients have from GASNet-EX's headers. */
#ifndef GEX_HELPERS_H
#define GEX_HELPERS_H

#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(text) #text
#define _STRINGIFY(text) _STRINGIFY_HELPER(text)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif

#endif
