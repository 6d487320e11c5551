/* GASNet-EX's tools: numbers and sizes as text, variables, zeros, backtraces, the process. */
#include "ex_check.h"

#include <gasnet_tools.h>

GASNETT_IDENT(check_ident, "$CheckIdent: of a client $");

static int user_traces, user_fails;

GASNETT_EXTERNC int write_trace(int fd) {
    if (user_fails) return 1;
    ++user_traces;
    return fd < 0;
}
GASNETT_BEGIN_EXTERNC
gasnett_backtrace_type_t gasnett_backtrace_user = {"CHECK", &write_trace, 1};
GASNETT_END_EXTERNC

static void read_text(const char *text, uint64_t unit, int64_t value) {
    if (gasnett_parse_int(text, unit) != value) check_failed(__FILE__, __LINE__, text);
}

static void numbers(void) {
    char text[40];
    int bit, is_size;
    read_text("128.0 MB", 1, INT64_C(128) << 20);
    read_text("4gb", 1, INT64_C(4) << 30);
    read_text("3", 1 << 20, 3 << 20);
    read_text("-0x1F", 0, -31);
    for (is_size = 0; is_size < 2; ++is_size) {
        for (bit = 0; bit < 62; ++bit) {
            int64_t value = (INT64_C(1) << bit) + (bit % 3 == 1);
            CHECK(gasnett_format_number(value, text, sizeof text, is_size) == text);
            read_text(text, (uint64_t)is_size, value);
        }
    }
    CHECK(strcmp(gasnett_format_number(64 << 10, text, sizeof text, 1), "64 KB") == 0);
    CHECK(strcmp(gasnett_format_number(123456, text, 4, 0), "123") == 0);
    text[0] = 'x';
    CHECK(gasnett_format_number(1, text, 0, 0)[0] == 'x');
    CHECK(gasnett_format_dt(NULL, GEX_DT_I32) == sizeof "GEX_DT_I32" && gasnett_format_op(text, GEX_OP_FADD) == 12);
    CHECK(strcmp(text, "GEX_OP_FADD") == 0 && gasnett_format_ti(NULL, GEX_TI_EP) == sizeof "GEX_TI_EP");
}

static void lists(void) {
    char *text = (char *)malloc(gasnett_format_memveclist_bufsz(40));
    gex_Memvec_t regions[40];
    void *addresses[40];
    size_t counts[40], i;
    ptrdiff_t strides[40];
    for (i = 0; i < 40; ++i) {
        regions[i].gex_addr = addresses[i] = (void *)(uintptr_t)UINT64_MAX;
        regions[i].gex_len = counts[i] = SIZE_MAX;
        strides[i] = PTRDIFF_MIN;
    }
    CHECK(gasnett_format_memveclist(text, 40, regions) <= gasnett_format_memveclist_bufsz(40));
    CHECK(strncmp(text, "40 regions: 0xff", 16) == 0 && strcmp(text + strlen(text) - 4, " ...") == 0);
    CHECK(gasnett_format_addrlist(text, 0, addresses, 8) == strlen("0 regions of 8 bytes:") + 1);
    CHECK(gasnett_format_addrlist(text, 40, addresses, 8) <= gasnett_format_addrlist_bufsz(40));
    text = (char *)realloc(text, gasnett_format_putsgets_bufsz(40));
    for (i = 0; i <= 40; ++i) {
        size_t length = gasnett_format_putsgets(text, NULL, GEX_TM_INVALID, 7, addresses[0], strides, addresses[1], strides,
                                                SIZE_MAX, counts, i);
        CHECK(length == strlen(text) + 1 && length <= gasnett_format_putsgets_bufsz(i));
    }
    free(text);
}

static void variables(void) {
    gasnett_setenv("CHECK_SIZE", "0.5 KB");
    gasnett_setenv("CHECK_NOTHING", "");
    gasnett_setenv("CHECK_FRACTION", "3/8");
    gasnett_setenv("CHECK_ANSWER", "No");
    CHECK(gasnett_getenv_int_withdefault("CHECK_SIZE", 7, 1) == 512);
    CHECK(gasnett_getenv_int_withdefault("CHECK_NOTHING", 7, 1) == 7);
    CHECK(gasnett_getenv_int_withdefault("CHECK_UNSET", -7, 0) == -7);
    CHECK(gasnett_getenv_dbl_withdefault("CHECK_FRACTION", 0) == 0.375);
    CHECK(gasnett_getenv_yesno_withdefault("CHECK_ANSWER", 1) == 0 && gasnett_getenv_yesno_withdefault("CHECK_UNSET", 1) == 1);
    CHECK(strcmp(gasnett_getenv_withdefault("CHECK_NOTHING", "text"), "") == 0);
    CHECK(strcmp(gasnett_getenv_withdefault("CHECK_UNSET", "text"), "text") == 0);
    CHECK(gasnett_getenv_withdefault("CHECK_UNSET", NULL) == NULL && gasnett_getenv("CHECK_UNSET") == NULL);
    gasnett_unsetenv("CHECK_SIZE");
    CHECK(gasnett_getenv("CHECK_SIZE") == NULL && gasnett_verboseenv() == 0);
    gasnett_setenv("GASNET_VERBOSEENV", "1");
    CHECK(gasnett_verboseenv() == (gex_System_QueryJobRank() == 0));
    gasnett_envstr_display("CHECK_SHOWN", "a text", 0);
    gasnett_envstr_display("CHECK_SHOWN", "again", 0);
    gasnett_envint_display("CHECK_SHOWN_SIZE", 1 << 20, 1, 1);
    gasnett_envdbl_display("CHECK_SHOWN_NUMBER", 0.5, 0);
    gasnett_unsetenv("GASNET_VERBOSEENV");
}

static void zeros(void) {
    unsigned char from[70], to[70];
    size_t start, count, i;
    for (i = 0; i < sizeof from; ++i) from[i] = (unsigned char)(i % 3);
    for (start = 0; start < 9; ++start) {
        for (count = 0; start + count <= sizeof from; ++count) {
            size_t expected = 0;
            for (i = 0; i < count; ++i) expected += from[start + i] == 0;
            memset(to, 9, sizeof to);
            CHECK_EQ(gasnett_count0s_copy(to + start, from + start, count), expected);
            CHECK_EQ(gasnett_count0s(to, sizeof to), expected);
            CHECK(memcmp(to + start, from + start, count) == 0);
        }
    }
    CHECK(gasnett_count0s_uint32_t(0x100) == 3 && gasnett_count0s_uint64_t(0) == 8);
    CHECK(gasnett_count0s_uintptr_t(~(uintptr_t)0) == 0);
}

static void backtraces(void) {
    gasnett_backtrace_init(gasnett_exe_name());
    CHECK(gasnett_print_backtrace(2) == 0 && user_traces == 1);
    gasnett_setenv("GASNET_BACKTRACE_TYPE", "EXECINFO");
    CHECK(gasnett_print_backtrace(2) == 0 && user_traces == 1);
    gasnett_setenv("GASNET_BACKTRACE_TYPE", "EXECINFO,CHECK");
    user_fails = 1;
    CHECK(gasnett_print_backtrace(2) == 0 && user_traces == 1);
    user_fails = 0;
    CHECK(gasnett_print_backtrace_ifenabled(2) == 1);
    gasnett_setenv("GASNET_BACKTRACE", "1");
    CHECK(gasnett_print_backtrace_ifenabled(2) == 0 && user_traces == 2);
}

static void process(void) {
    const void *taken[] = {(const void *)(uintptr_t)&_gasneti_threadkey_init, (const void *)(uintptr_t)&_gasnett_trace_printf_noop};
    int counted = 0;
    CHECK(taken[0] != NULL && taken[1] != NULL);
    CHECK(strstr(gasnett_exe_name(), "ex_tools") != NULL && check_ident[0] == '$');
    CHECK(1 << GASNETT_PAGESHIFT == GASNETT_PAGESIZE && strlen(GASNETT_SYSTEM_TUPLE) > 3);
    CHECK(gasnett_release_version() == UINT64_C(2025080000) && strcmp(gasnett_release_version_str(), "2025.8.0") == 0);
    CHECK(GASNETT_RELEASE_VERSION_MAJOR == 2025 && GASNETT_SPEC_VERSION_MAJOR == 1 && *gasnett_performance_warning_str() == '\0');
    CHECK(gasnett_set_affinity(0) == 0 && gasnett_set_affinity(gasnett_cpu_count()) == 0 && gasnett_set_affinity(-1) == 0);
    CHECK(gasnett_maximize_rlimits() != 0 && gasnett_maximize_rlimit(-1, "RLIMIT_NONE") == 0);
    gasnett_setenv("GASNET_MAXIMIZE_RLIMIT_NONE", "0");
    CHECK(gasnett_maximize_rlimit(-1, "RLIMIT_NONE") != 0);
    GASNETT_UNUSED_ARGS3(++counted, ++counted, ++counted);
    GASNETT_STATS_PRINTF("%d", 1);
    GASNETT_STATS_SETMASK(GASNETT_STATS_GETMASK());
    GASNETT_STATS_DUMP(++counted);
    CHECK(counted == 4);
    switch (counted) {
    case 4:
        ++counted;
        GASNETT_FALLTHROUGH
    case 5:
        ++counted;
        break;
    default:
        gasnett_unreachable();
    }
    gasnett_assume(counted == 6);
    CHECK(counted == 6);
}

int main(int argc, char **argv) {
    struct ex_job job = ex_start();
    if (argc > 1 && strcmp(argv[1], "number") == 0) gasnett_parse_int("12 parsecs", 1);
    if (argc > 1 && strcmp(argv[1], "variable") == 0) gasnett_getenv_int_withdefault("CHECK_RANKS_AS_TEXT", 1, 0);
    ex_attach(&job, 1, NULL, 0);
    numbers();
    lists();
    variables();
    zeros();
    backtraces();
    process();
    ex_barrier(&job);
    return 0;
}
