#ifndef GRADING_CAPTURE_H
#define GRADING_CAPTURE_H
/* capture.h - bytes that a process wrote, kept within bounds. */
#include <stdbool.h>
#include <stddef.h>

enum { CAPTURE_HEAD = 64 << 10, CAPTURE_TAIL = 64 << 10 };

/* capture - either the beginning and the end of what came (tail != NULL: a ring), or, with a limit
 * of its own, the beginning alone */
struct capture {
    size_t limit; /* bytes that `head` may hold */
    char *head, *tail;
    size_t head_bytes, head_room;
    size_t total; /* all that came, kept or not */
};

/* capture_open - head and tail, as for output; capture_open_data - up to `limit` bytes, then no
 * more */
void capture_open(struct capture *capture);
void capture_open_data(struct capture *capture, size_t limit);
void capture_close(struct capture *capture);

void capture_add(struct capture *capture, const char *bytes, size_t n);

/* capture_overflowed - more came than is kept */
bool capture_overflowed(const struct capture *capture);

/* capture_text - all that is kept, the cut marked, as clean text ending with a newline unless empty
 * owns: the caller (free) */
char *capture_text(const struct capture *capture);
#endif
