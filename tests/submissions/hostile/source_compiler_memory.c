/* A hundred million constants: more than the compiler has memory for.
 * fails: schedule forward backward
 * file: pipeline.c
 */
#define A 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
#define B A A A A A A A A A A
#define C B B B B B B B B B B
#define D C C C C C C C C C C
#define E D D D D D D D D D D
#define F E E E E E E E E E E
#define G F F F F F F F F F F
int constants[] = {G G G G G G G G G G};
