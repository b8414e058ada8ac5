#include "criteria/cause.h"

#include <stdio.h>
#include <string.h>

const struct observations *seen(const struct judge *j)
{
    return judge_observations(j, 1, 0);
}

bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool refused(const struct observations *o, const char *key)
{
    const char *type, *message;
    return observed_error(o, key, &type, &message) && strcmp(type, "ValueError") == 0;
}

/* Judges look at refusals last: if the reason is none, what was taken is not why. */
bool cause_taken(struct judge *j, const void *with)
{
    const struct taken *c = with;
    if (!strstr(judge_reason(j), " should have raised a ValueError"))
        return false;
    int world_size = c->world_size ? c->world_size : 1;
    const struct observations *o = judge_observations(j, world_size, 0);
    const char *type, *message;
    for (int i = 0; i < c->cases; i++) {
        const char *key = scope_printf("%s %d%s", c->prefix, i, c->suffix);
        if (!observed_error(o, key, &type, &message) || refused(o, key) == (c->taken >> i & 1))
            return false;
    }
    return true;
}

bool cause_said(struct judge *j, const void *with)
{
    const char *reason = judge_reason(j), *text = with;
    int rank, world_size, length = 0;
    if (sscanf(reason, "rank %d of %d: %n", &rank, &world_size, &length) == 2)
        reason += length;
    return strncmp(reason, text, strlen(text)) == 0;
}
