/* test_corpus.c - the corpora of the fuzz targets, replayed. What once crashed a target is there.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdint.h>

#include "tests/bytes.h"
#include "tests/suite.h"

static glob_t targets; /* tests/fuzz/fuzz_NAME.c */

typedef int fuzz_target(const uint8_t *bytes, size_t n);

/* "pt" of "tests/fuzz/fuzz_pt.c". owns: borrowed from the scope */
static char *name_of(const char *path)
{
    const char *name = path + strlen("tests/fuzz/fuzz_");
    return scope_printf("%.*s", (int)strcspn(name, "."), name);
}

/* Each in memory of its exact size, so that a sanitizer sees a byte too many. */
static void replay(fuzz_target *target, const char *path)
{
    SCOPE;
    struct bytes seed = bytes_of_file(path);
    uint8_t *exact = malloc(seed.n);
    ck_assert(exact || seed.n == 0);
    if (seed.n > 0)
        memcpy(exact, seed.at, seed.n);
    ck_assert_int_eq(target(exact, seed.n), 0);
    free(exact);
}

START_TEST(test_replay)
{
    SCOPE;
    glob_t seeds;
    const char *name = name_of(targets.gl_pathv[_i]);
    fuzz_target *target = (fuzz_target *)dlsym(RTLD_DEFAULT, scope_printf("fuzz_%s", name));
    ck_assert_msg(target != NULL, "no target %s", name);
    const char *pattern = scope_printf("tests/fuzz/corpus/%s/*", name);
    ck_assert_msg(glob(pattern, 0, NULL, &seeds) == 0, "no corpus for %s", name);
    for (size_t i = 0; i < seeds.gl_pathc; i++) {
        mark_point();
        replay(target, seeds.gl_pathv[i]);
    }
    globfree(&seeds);
}
END_TEST

int main(void)
{
    if (glob("tests/fuzz/fuzz_*.c", 0, NULL, &targets) != 0)
        return 1;
    Suite *suite = suite_create("corpus");
    TCase *replays = tcase_create("replays");
    tcase_set_timeout(replays, 60);
    tcase_add_loop_test(replays, test_replay, 0, (int)targets.gl_pathc);
    suite_add_tcase(suite, replays);
    int status = suite_run(suite);
    globfree(&targets);
    return status;
}
