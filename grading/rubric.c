#include "grading/rubric.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Filled by the criteria's constructors before main, and constant from then on. */
static struct {
    int count, section_count;
    const struct criterion *criteria[RUBRIC_MAX];
    const char *sections[RUBRIC_MAX + 1];
} rubric;

void criterion_register(const struct criterion *criterion)
{
    assert(rubric.count < RUBRIC_MAX && !rubric_find(criterion->id));
    int place = rubric.count++;
    for (; place > 0 && rubric.criteria[place - 1]->order > criterion->order; place--)
        rubric.criteria[place] = rubric.criteria[place - 1];
    rubric.criteria[place] = criterion;
}

int rubric_all(const struct criterion *const **list)
{
    *list = rubric.criteria;
    return rubric.count;
}

const struct criterion *rubric_find(const char *id)
{
    for (int i = 0; i < rubric.count; i++) {
        if (strcmp(rubric.criteria[i]->id, id) == 0)
            return rubric.criteria[i];
    }
    return NULL;
}

static bool has_section(const char *name)
{
    for (int i = 0; i < rubric.section_count; i++) {
        if (strcmp(rubric.sections[i], name) == 0)
            return true;
    }
    return false;
}

const char *const *rubric_sections(void)
{
    for (int i = 0; i < rubric.count; i++) {
        if (!has_section(rubric.criteria[i]->section))
            rubric.sections[rubric.section_count++] = rubric.criteria[i]->section;
    }
    return rubric.sections;
}
