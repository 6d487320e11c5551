/* The text of what macros stand for, and words put together, by the names that clients have from GASNet. */
#ifndef GASNET_TEXT_H
#define GASNET_TEXT_H

#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(text) #text
#define _STRINGIFY(text) _STRINGIFY_HELPER(text)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif

#endif
