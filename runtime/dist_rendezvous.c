#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/dist_connect.h"

int token_random(struct token *token)
{
    if (getentropy(token, sizeof *token) < 0)
        return raise_error(OSError, "no random numbers for a group's token: %s", strerror(errno));
    return 0;
}

/* hash - FNV-1a, continued */
static uint64_t hash(uint64_t state, const char *text)
{
    do
        state = (state ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return state;
}

struct token token_of(const char *const *texts, int n)
{
    struct token token;
    for (int word = 0; word < 4; word++) {
        token.words[word] = 0xcbf29ce484222325 + (uint64_t)word;
        for (int i = 0; i < n; i++)
            token.words[word] = hash(token.words[word], texts[i]);
    }
    return token;
}

/* The file: one line, "ADDRESS TOKEN END". */
static int write_whole(int fd, const char *address, const struct token *token)
{
    const uint64_t *w = token->words;
    char line[ADDRESS_BYTES + 100];
    int length = snprintf(line, sizeof line,
                          "%s %016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 " end\n",
                          address, w[0], w[1], w[2], w[3]);
    return write(fd, line, (size_t)length) == length ? 0 : -1;
}

int rendezvous_publish(const char *path, const char *address, const struct token *token)
{
    size_t bytes = strlen(path) + 8;
    char *aside = malloc(bytes);
    if (!aside)
        return raise_error(MemoryError, "out of memory for a file name");
    snprintf(aside, bytes, "%s.XXXXXX", path);
    int fd = mkstemp(aside), result = -1; /* for its owner only */
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        result = write_whole(fd, address, token);
        result |= close(fd);
        result = result < 0 ? -1 : rename(aside, path);
    }
    if (result < 0)
        (void)raise_error(OSError, "cannot write the rendezvous file %s: %s", path,
                          strerror(errno));
    if (result < 0 && fd >= 0)
        unlink(aside);
    free(aside);
    return result;
}

bool rendezvous_read(const char *path, char address[ADDRESS_BYTES], struct token *token)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    uint64_t *w = token->words;
    char end[4] = "";
    int fields = fscanf(file, "%127s %16" SCNx64 "%16" SCNx64 "%16" SCNx64 "%16" SCNx64 " %3s",
                        address, &w[0], &w[1], &w[2], &w[3], end);
    fclose(file);
    return fields == 6 && strcmp(end, "end") == 0;
}
