/* Has the assembler put a file of the machine into its library.
 * fails: schedule forward backward
 * file: pipeline.c
 */
__asm__(".section .rodata\n.incbin \"/etc/passwd\"\n.text");
