#ifndef RUNTIME_DIST_CONNECT_H
#define RUNTIME_DIST_CONNECT_H
/* dist_connect.h - how ranks find each other, and know each other when they meet. */
#include <stdbool.h>

#include "runtime/dist_tcp.h"

/* What only the ranks of one group know. */
struct token {
    uint64_t words[4];
};

/* token_random - one that nobody can guess. errors: -1, with OSError
 * token_of - made of n texts that all ranks know */
int token_random(struct token *token);
struct token token_of(const char *const *texts, int n);

/* rendezvous_publish - write where rank 0 listens to `path`, for its owner only; the file appears
 * whole. errors: -1, with OSError */
int rendezvous_publish(const char *path, const char *address, const struct token *token);

/* rendezvous_read - what rank 0 has published. returns: false if there is nothing (yet) */
bool rendezvous_read(const char *path, char address[ADDRESS_BYTES], struct token *token);

#endif
