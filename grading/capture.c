#include "grading/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grading/fault.h"
#include "grading/text.h"

void capture_open(struct capture *capture)
{
    *capture = (struct capture){.limit = CAPTURE_HEAD, .tail = alloc_or_fault(CAPTURE_TAIL)};
}

void capture_open_data(struct capture *capture, size_t limit)
{
    *capture = (struct capture){.limit = limit};
}

void capture_close(struct capture *capture)
{
    free(capture->head);
    free(capture->tail);
    *capture = (struct capture){0};
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void reserve(struct capture *capture, size_t bytes)
{
    if (bytes <= capture->head_room)
        return;
    size_t room = capture->head_room ? capture->head_room : 4096;
    while (room < bytes)
        room *= 2;
    char *head = realloc(capture->head, room);
    if (!head)
        fault("out of memory: cannot keep %zu bytes that a process wrote", room);
    capture->head = head;
    capture->head_room = room;
}

void capture_add(struct capture *capture, const char *bytes, size_t n)
{
    size_t first = smaller(n, capture->limit - capture->head_bytes);
    if (first) {
        reserve(capture, capture->head_bytes + first);
        memcpy(capture->head + capture->head_bytes, bytes, first);
        capture->head_bytes += first;
    }
    size_t begin = n - smaller(n - first, CAPTURE_TAIL); /* what precedes would be overwritten */
    for (size_t i = begin; capture->tail && i < n;) {
        size_t at = (capture->total + i - capture->limit) % CAPTURE_TAIL;
        size_t length = smaller(n - i, CAPTURE_TAIL - at);
        memcpy(capture->tail + at, bytes + i, length);
        i += length;
    }
    capture->total += n;
}

bool capture_overflowed(const struct capture *capture)
{
    return capture->total > capture->limit + (capture->tail ? CAPTURE_TAIL : 0);
}

/* Everything kept, in order, with the mark where something is missing. */
static char *joined(const struct capture *capture, size_t *bytes)
{
    size_t beyond = capture->tail ? capture->total - capture->head_bytes : 0;
    size_t tail = smaller(beyond, CAPTURE_TAIL);
    char *text = alloc_or_fault(capture->head_bytes + tail + 80), *end = text;
    if (capture->head_bytes)
        memcpy(end, capture->head, capture->head_bytes);
    end += capture->head_bytes;
    if (capture_overflowed(capture))
        end += sprintf(end, "\n[... %zu bytes cut ...]\n",
                       capture->total - capture->head_bytes - tail);
    for (size_t i = beyond - tail; i < beyond; i++)
        *end++ = capture->tail[i % CAPTURE_TAIL];
    *bytes = (size_t)(end - text);
    return text;
}

char *capture_text(const struct capture *capture)
{
    size_t bytes;
    char *raw = joined(capture, &bytes);
    if (bytes && raw[bytes - 1] != '\n')
        raw[bytes++] = '\n';
    char *text = text_clean(raw, bytes);
    if (!text)
        fault("out of memory: cannot keep the output of a process");
    free(raw);
    return text;
}
