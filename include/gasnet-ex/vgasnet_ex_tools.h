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

/**
 * Reads an integer, or a size in bytes.
 *
 * Fatal: a text that is no number.
 *
 * @param text a size as "128.0 MB" or "4K"; with unit 0 an integer, decimal or with 0x
 * @param unit bytes of a number without a unit; 0 for an integer that is no size
 * @return the number
 * @see GASNet's README-tools (gasnett_parse_int)
 */
int64_t vgasnet_ex_tool_parse_int(const char *text, uint64_t unit);

/**
 * Writes a number so that gasnett_parse_int reads it as the same one.
 *
 * Fatal: a null pointer.
 *
 * @param value the number
 * @param text receives the text; not null
 * @param room size of text in bytes; 30 suffice
 * @param is_size 0 for an integer, another number for a size in bytes
 * @return text
 * @see GASNet's README-tools (gasnett_format_number)
 */
char *vgasnet_ex_tool_format_number(int64_t value, char *text, size_t room, int is_size);

/* ---- the environment; with GASNET_VERBOSEENV set, rank 0 shows each variable that is asked for, once ---- */

/**
 * Returns a variable of the environment, or a default.
 *
 * A variable that is set, even to nothing, has that value.
 *
 * @param name name of the variable; not null
 * @param otherwise the default; may be null
 * @return the value, or otherwise
 * @see GASNet's README-tools (gasnett_getenv_withdefault)
 */
char *vgasnet_ex_tool_getenv_withdefault(const char *name, const char *otherwise);

/**
 * Returns whether a variable of the environment says yes.
 *
 * Fatal: a value that is neither yes nor no.
 *
 * @param name name of the variable; not null
 * @param otherwise the answer without the variable
 * @return 1 for yes, 0 for no
 * @see GASNet's README-tools (gasnett_getenv_yesno_withdefault)
 */
int vgasnet_ex_tool_getenv_yesno_withdefault(const char *name, int otherwise);

/**
 * Returns a number or a size in a variable of the environment, or a default.
 *
 * Fatal: a value that is no number.
 *
 * @param name name of the variable; not null
 * @param otherwise the default
 * @param unit bytes of a number without a unit; 0 for an integer that is no size
 * @return the number
 * @see GASNet's README-tools (gasnett_getenv_int_withdefault)
 */
int64_t vgasnet_ex_tool_getenv_int_withdefault(const char *name, int64_t otherwise, uint64_t unit);

/**
 * Returns a fraction in a variable of the environment, or a default.
 *
 * Fatal: a value that is no number.
 *
 * @param name name of the variable; not null
 * @param otherwise the default
 * @return the number: the value, which is one number, or two with a slash between them
 * @see GASNet's README-tools (gasnett_getenv_dbl_withdefault)
 */
double vgasnet_ex_tool_getenv_dbl_withdefault(const char *name, double otherwise);

/**
 * Returns whether rank 0 shows the variables that are asked for.
 *
 * @return 1 if GASNET_VERBOSEENV is set, else 0
 * @see GASNet's README-tools (gasnett_verboseenv)
 */
int vgasnet_ex_tool_verboseenv(void);

/**
 * Shows a variable and its text, once, if GASNET_VERBOSEENV is set.
 *
 * @param name name of the variable; not null
 * @param value its text; not null
 * @param is_default not 0 if the value is a default
 * @see GASNet's README-tools (gasnett_envstr_display)
 */
void vgasnet_ex_tool_envstr_display(const char *name, const char *value, int is_default);

/**
 * Shows a variable and its number, once, if GASNET_VERBOSEENV is set.
 *
 * @param name name of the variable; not null
 * @param value its number
 * @param is_default not 0 if the value is a default
 * @param is_size not 0 if the number is a size in bytes
 * @see GASNet's README-tools (gasnett_envint_display)
 */
void vgasnet_ex_tool_envint_display(const char *name, int64_t value, int is_default, int is_size);

/**
 * Shows a variable and its fraction, once, if GASNET_VERBOSEENV is set.
 *
 * @param name name of the variable; not null
 * @param value its number
 * @param is_default not 0 if the value is a default
 * @see GASNet's README-tools (gasnett_envdbl_display)
 */
void vgasnet_ex_tool_envdbl_display(const char *name, double value, int is_default);

/* ---- the process ---- */

/**
 * Returns the path of the program that runs.
 *
 * @return the path, a constant, or an empty text
 * @see GASNet's README-tools (gasnett_exe_name)
 */
const char *vgasnet_ex_tool_exe_name(void);

/**
 * Binds the calling thread to a processor.
 *
 * @param processor number of the processor, counted from 0 and around
 * @return 0, or another number if that fails
 * @see GASNet's README-tools (gasnett_set_affinity)
 */
int vgasnet_ex_tool_set_affinity(int processor);

/**
 * Raises the soft limit of a resource to the hard one, unless the variable GASNET_MAXIMIZE_name says no.
 *
 * @param resource an RLIMIT_ of the system
 * @param name name of the limit, as "RLIMIT_CPU"
 * @return not 0 on success
 * @see GASNet's README-tools (gasnett_maximize_rlimit)
 */
int vgasnet_ex_tool_maximize_rlimit(int resource, const char *name);

/**
 * Raises the soft limits of processor time and of all kinds of memory to the hard ones.
 *
 * @return not 0 if all succeed
 * @see GASNet's README-tools (gasnett_maximize_rlimits)
 */
int vgasnet_ex_tool_maximize_rlimits(void);

/* ---- values as text, for messages; each returns the room that it needs, and writes unless the text is null ---- */

/**
 * Writes data types as text, for messages.
 *
 * @param text receives the text; null to learn its size
 * @param types some of GEX_DT_
 * @return the bytes that the text needs, its end included
 * @see GASNet's README-tools (gasnett_format_dt)
 */
size_t vgasnet_ex_tool_format_dt(char *text, gex_DT_t types);

/**
 * Writes operations as text, for messages.
 *
 * @param text receives the text; null to learn its size
 * @param operations some of GEX_OP_
 * @return the bytes that the text needs, its end included
 * @see GASNet's README-tools (gasnett_format_op)
 */
size_t vgasnet_ex_tool_format_op(char *text, gex_OP_t operations);

/**
 * Writes fields of a message as text, for messages.
 *
 * @param text receives the text; null to learn its size
 * @param fields some of GEX_TI_
 * @return the bytes that the text needs, its end included
 * @see GASNet's README-tools (gasnett_format_ti)
 */
size_t vgasnet_ex_tool_format_ti(char *text, gex_TI_t fields);

#ifdef __cplusplus
}
#endif

#endif
