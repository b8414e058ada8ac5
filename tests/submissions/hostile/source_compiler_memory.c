/* More constants than the compiler has memory for.
 * fails: schedule forward backward
 * file: pipeline.c
 */
#define TEN(x) x x x x x x x x x x
#define THOUSAND(x) TEN(TEN(TEN(x)))
int constants[] = {THOUSAND(THOUSAND(TEN(TEN(1, ))))};
