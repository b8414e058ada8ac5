#include "runtime/words.h"

#include <ctype.h>
#include <string.h>

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int letter(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

/* distance - Levenshtein's, a row of his table at a time */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t row[LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return n + m;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (letter(a[i - 1]) != letter(b[j - 1]));
            row[j] = min(min(above, row[j - 1]) + 1, replaced);
            diagonal = above;
        }
    }
    return row[m];
}

const char *word_closest(const char *word, const char *const *words, size_t limit)
{
    const char *closest = NULL;
    size_t nearest = limit + 1;
    for (; *words; words++) {
        size_t away = distance(word, *words);
        if (away < nearest) {
            nearest = away;
            closest = *words;
        }
    }
    return closest;
}
