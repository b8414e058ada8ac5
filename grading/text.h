#ifndef GRADING_TEXT_H
#define GRADING_TEXT_H
/* text.h - text from untrusted sources, made fit for a report and for a terminal. */
#include <stddef.h>

/* text_clean - the n bytes as valid UTF-8 that no terminal acts upon: terminal escape sequences are
 * removed, CR LF and a lone CR become LF, and every byte that is not UTF-8, every NUL and every
 * other control character except tab and newline becomes U+FFFD. Clean text stays as it is.
 * owns: the caller (free). errors: NULL without memory; NULL bytes are taken as none */
char *text_clean(const char *bytes, size_t n);

/* text_closest - the word nearest to `word` (word_closest), for "did you mean"
 * words:   NULL-ended
 * returns: NULL if none is near enough to have been meant. owns: borrowed from words */
const char *text_closest(const char *word, const char *const *words);
#endif
