/* nvrtc_compile ARCHITECTURE FILE... - compile kernels with NVRTC: for toolkits without nvcc.
 *
 * Only kernels are compiled, not what launches them. Prints a line for each file; exits with 1 and
 * the compiler's words if one does not compile. */
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

/* What the kernels include of the C library and CUDA: NVRTC brings the functions, but no headers.
 */
static const char *const header_names[] = {"stdint.h", "stdbool.h", "stddef.h",
                                           "math.h",   "string.h",  "cuda_runtime_api.h"};
static const char *const headers[] = {
    "typedef unsigned short uint16_t;\n"
    "typedef int int32_t;\n"
    "typedef unsigned int uint32_t;\n"
    "typedef long long int64_t;\n"
    "typedef unsigned long long uint64_t;\n"
    "#define UINT32_MAX 4294967295u\n",
    "",
    "",
    "",
    "",
    "typedef struct CUstream_st *cudaStream_t;\n",
};
enum { HEADERS = sizeof headers / sizeof *headers };

static void demand(nvrtcResult result, const char *what)
{
    if (result == NVRTC_SUCCESS)
        return;
    fprintf(stderr, "nvrtc_compile: %s: %s\n", what, nvrtcGetErrorString(result));
    exit(EXIT_FAILURE);
}

/* owns: the caller */
static char *file_read(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = fopen(path, "r");
    if (!file || getdelim(&text, &bytes, '\0', file) < 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return text;
}

static void print_log(nvrtcProgram program)
{
    size_t bytes;
    demand(nvrtcGetProgramLogSize(program, &bytes), "the size of the log");
    char *log = malloc(bytes);
    demand(nvrtcGetProgramLog(program, log), "the log");
    fputs(log, stderr);
    free(log);
}

static void compile(const char *architecture, const char *path)
{
    char option[64], *source = file_read(path);
    snprintf(option, sizeof option, "--gpu-architecture=%s", architecture);
    /* The headers also declare what the host has; it is not called. */
    const char *const options[] = {option, "--std=c++17", "--include-path=.",
                                   "--device-as-default-execution-space"};
    nvrtcProgram program;
    size_t bytes;
    demand(nvrtcCreateProgram(&program, source, path, HEADERS, headers, header_names), path);
    nvrtcResult result = nvrtcCompileProgram(program, 4, options);
    if (result != NVRTC_SUCCESS)
        print_log(program);
    demand(result, path);
    demand(nvrtcGetCUBINSize(program, &bytes), path);
    printf("%s: %zu bytes for %s\n", path, bytes, architecture);
    demand(nvrtcDestroyProgram(&program), path);
    free(source);
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        compile(argv[1], argv[i]);
    return argc > 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
