#ifndef RUNTIME_WORDS_H
#define RUNTIME_WORDS_H
/* words.h - near misses of known words, for "did you mean". */
#include <stddef.h>

/* word_distance - insertions, deletions and replacements between two words, capitals and small
 * letters being equal, and '-' and '_'. Words of more than 63 letters are as far apart as can be.
 * source: Levenshtein (1966) */
size_t word_distance(const char *a, const char *b);

/* word_closest - the one of `words` (NULL-ended) nearest to `word` within `limit`, or NULL
 * owns: borrowed from `words` */
const char *word_closest(const char *word, const char *const *words, size_t limit);
#endif
