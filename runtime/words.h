#ifndef RUNTIME_WORDS_H
#define RUNTIME_WORDS_H
/* words.h - near misses of known words, for "did you mean". */
#include <stddef.h>

/* word_closest - the one of `words` (NULL-ended) nearest to `word`, or NULL if each is further away
 * than `limit` insertions, deletions and replacements. Capitals and small letters are equal, and so
 * are '-' and '_'; words of more than 63 letters are as far apart as can be.
 * owns: borrowed from `words`. source: Levenshtein (1966) */
const char *word_closest(const char *word, const char *const *words, size_t limit);
#endif
