/*
 * The library's functions for GASNet-EX's tools. gasnet_tools.h defines GASNet's names over them: vgasnet_ex_tool_parse_int is
 * gasnett_parse_int, with the same arguments. GASNet's README-tools documents them. They may be called before init, and in
 * programs that have no job.
 *
 * A text or a variable that makes no sense ends the program, or the job, with a line.
 */
#ifndef VGASNET_EX_TOOLS_H
#define VGASNET_EX_TOOLS_H

#include <gasnet_fwd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- numbers ---- */

/* With a unit other than 0 a size in bytes, as "128.0 MB" or "4K", where the unit is what a number alone counts; with unit 0 an
 * integer, decimal or with 0x. */
int64_t vgasnet_ex_tool_parse_int(const char *text, uint64_t unit);
/* What parse_int reads as the same number, if the buffer has room; returns the buffer. */
char *vgasnet_ex_tool_format_number(int64_t value, char *text, size_t room, int is_size);

/* ---- the environment; with GASNET_VERBOSEENV set, rank 0 shows each variable that is asked for, once ---- */

/* A variable that is set, even to nothing, has that value. */
char *vgasnet_ex_tool_getenv_withdefault(const char *name, const char *otherwise);
int vgasnet_ex_tool_getenv_yesno_withdefault(const char *name, int otherwise);
int64_t vgasnet_ex_tool_getenv_int_withdefault(const char *name, int64_t otherwise, uint64_t unit);
/* A number, or two with a slash between them. */
double vgasnet_ex_tool_getenv_dbl_withdefault(const char *name, double otherwise);
int vgasnet_ex_tool_verboseenv(void);
void vgasnet_ex_tool_envstr_display(const char *name, const char *value, int is_default);
void vgasnet_ex_tool_envint_display(const char *name, int64_t value, int is_default, int is_size);
void vgasnet_ex_tool_envdbl_display(const char *name, double value, int is_default);

/* ---- the process ---- */

/* The path of the program that runs, or an empty text. */
const char *vgasnet_ex_tool_exe_name(void);
/* Binds the calling thread to a processor, counted from 0 and around; 0, or another number if that fails. */
int vgasnet_ex_tool_set_affinity(int processor);
/* Raises the soft limit of a resource to the hard one, unless the variable GASNET_MAXIMIZE_name says no. Not 0 on success. */
int vgasnet_ex_tool_maximize_rlimit(int resource, const char *name);
/* That for processor time and all kinds of memory. */
int vgasnet_ex_tool_maximize_rlimits(void);

/* ---- values as text, for messages; each returns the room that it needs, and writes unless the text is null ---- */

size_t vgasnet_ex_tool_format_dt(char *text, gex_DT_t types);
size_t vgasnet_ex_tool_format_op(char *text, gex_OP_t operations);
size_t vgasnet_ex_tool_format_ti(char *text, gex_TI_t fields);

#ifdef __cplusplus
}
#endif

#endif
