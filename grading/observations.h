#ifndef GRADING_OBSERVATIONS_H
#define GRADING_OBSERVATIONS_H
/* observations.h - what a subject saw, as bytes that cross from untrusted to trusted.
 *
 * The subject writes records (observe_*, subject_went_wrong, observe_begin and observe_end, through
 * subject_record); the criterion process decodes them (observed_*, expect_*). All functions of
 * criterion.h named observe_* and observed_*, subject_fail and subject_went_wrong are in observe.c
 * and observations.c.
 *
 * A record: kind (1 byte), key (text), then by kind:
 *     int      8 bytes              ints     count (8 bytes), 8 bytes each
 *     number   8 bytes (a double)   text     length (4 bytes), bytes
 *     error    type (text), message (text); both empty: no error was pending
 *     tensor   dtype, device kind, requires_grad, ndim (1 byte each), device index (4 bytes), sizes
 *              (8 bytes each), elements in row-major order
 *     absent   nothing: there was no tensor
 *     failure  text                 end      nothing; nothing may follow it
 *     begin    nothing: student code runs from here on
 * A key is recorded once. Integers and elements are in this machine's order: both sides run on it.
 */
#include <stddef.h>

#include "criteria/criterion.h"
#include "grading/subject.h"

enum { OBSERVATIONS_MAX_BYTES = 256 << 20, OBSERVATIONS_MAX_RECORDS = 100 * 1000 };

enum observation_kind {
    OBSERVATION_INT = 1,
    OBSERVATION_INTS,
    OBSERVATION_NUMBER,
    OBSERVATION_TEXT,
    OBSERVATION_ERROR,
    OBSERVATION_TENSOR,
    OBSERVATION_ABSENT,
    OBSERVATION_FAILURE,
    OBSERVATION_END,
    OBSERVATION_BEGIN,
};

/* observe_begin - the first record: a subject that ends without it has run no student code */
void observe_begin(struct subject *s);

/* observe_end - the last record: without it the observations are not complete */
void observe_end(struct subject *s);

/* observations_decode - from bytes that a subject sent, whatever they are
 * returns: the observations of rank `rank` of `world_size`; NULL if the bytes are malformed: cut
 *          within a record, an unknown kind, a length or size beyond the data, a key twice, records
 *          after the end, more than the limits above. Raises nothing.
 * errors:  without memory it ends the process as a fault: that says nothing of the bytes
 * owns:    the caller, until observations_free (NULL allowed). */
struct observations *observations_decode(const void *bytes, size_t n, int rank, int world_size);
void observations_free(struct observations *o);

/* observations_complete - the end was recorded
 * observations_failure - the first reason to fail that was recorded, or NULL. owns: borrowed */
bool observations_complete(const struct observations *o);
const char *observations_failure(const struct observations *o);

/* For expect.c: the ranks that were given to observations_decode, and the kind of a record; 0 if
 * there is none under the key. */
int observations_rank(const struct observations *o);
int observations_world_size(const struct observations *o);
enum observation_kind observed_kind(const struct observations *o, const char *key);
#endif
