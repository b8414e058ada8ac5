#ifndef RUNTIME_PT_MACHINE_INTERNAL_H
#define RUNTIME_PT_MACHINE_INTERNAL_H
/* pt_machine_internal.h - the pickle machine's values: pt_unpickle.c runs the opcodes, pt_rebuild.c
 * knows what torch's globals mean. */
#include "runtime/pt_internal.h"

enum global {
    ORDERED_DICT,
    REBUILD_TENSOR,
    REBUILD_PARAMETER,
    FLOAT_STORAGE,
    DOUBLE_STORAGE,
    HALF_STORAGE,
};

enum kind { ABSENT, MARK, NONE, BOOL, INT, TEXT, TUPLE, DICT, GLOBAL, STORAGE, TENSOR };

struct value {
    enum kind kind;
    union {
        int64_t integer; /* BOOL, INT */
        enum global global;
        const char *text;
        struct sequence *sequence; /* TUPLE; DICT: key, value, key, value, ... */
        struct pt_tensor *tensor;  /* STORAGE (its name, size and dtype), TENSOR */
    };
};
struct sequence {
    size_t n, capacity;
    struct value *at;
};

struct machine {
    const uint8_t *at, *end;
    size_t size;         /* of the pickle; also room on the stack and in the memo */
    struct value *stack; /* depth values */
    struct value *memo;
    size_t depth;
    struct value result; /* ABSENT until STOP */
};

/* machine_push, machine_pop - errors: -1, with ValueError if another kind is on top */
int machine_push(struct machine *m, struct value value);
int machine_pop(struct machine *m, enum kind kind, struct value *value);

/* sequence_new - empty, with room. errors: NULL */
struct sequence *sequence_new(size_t capacity);

/* kind_name - "a tuple" */
const char *kind_name(enum kind kind);

/* The opcodes GLOBAL (after its two lines were read), BINPERSID, REDUCE and BUILD. errors: -1 */
int machine_global(struct machine *m, const char *name);
int machine_persistent_id(struct machine *m);
int machine_reduce(struct machine *m);
int machine_build(struct machine *m);
#endif
