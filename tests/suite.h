#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H
/* suite.h - what every test program does last. */
#include <check.h>
#include <stdlib.h>

/* suite_run - run a suite, as CK_FORK and its like in the environment say. owns: takes it over
 * returns: main's exit status */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
#endif
