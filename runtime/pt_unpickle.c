/* A small pickle machine: a stack of values, a memo, and the opcodes that torch.save writes for a
 * dictionary of tensors. It calls nothing: a REDUCE of a known global becomes a description.
 * Whatever is not in its tables is refused. Everything it makes is borrowed from the scope, and
 * bounded by the pickle's size: every opcode takes at least a byte and pushes at most one value. */
#include <string.h>

#include "runtime/error.h"
#include "runtime/pt_machine_internal.h"
#include "runtime/scope.h"

static const char *const kind_names[] = {"nothing",  "a mark",    "None",    "a bool",
                                         "an int",   "a string",  "a tuple", "a dict",
                                         "a global", "a storage", "a tensor"};

const char *kind_name(enum kind kind)
{
    return kind_names[kind];
}

/* ---- bytes ---- */

static const uint8_t *take(struct machine *m, size_t n)
{
    if (n > (size_t)(m->end - m->at))
        return raise_null(ValueError, "data.pkl ends in the middle of an opcode");
    m->at += n;
    return m->at - n;
}

static int take_unsigned(struct machine *m, int bytes, uint64_t *value)
{
    const uint8_t *at = take(m, (size_t)bytes);
    *value = 0;
    for (int i = 0; at && i < bytes; i++)
        *value |= (uint64_t)at[i] << 8 * i;
    return at ? 0 : -1;
}

/* ---- the stack ---- */

int machine_push(struct machine *m, struct value value)
{
    if (m->depth == m->size)
        return raise_error(ValueError, "data.pkl: the stack overflows");
    m->stack[m->depth++] = value;
    return 0;
}

static int push_kind(struct machine *m, enum kind kind)
{
    return machine_push(m, (struct value){.kind = kind});
}

static int push_integer(struct machine *m, enum kind kind, int64_t integer)
{
    return machine_push(m, (struct value){.kind = kind, .integer = integer});
}

static const struct value *top(struct machine *m)
{
    static const struct value nothing = {.kind = ABSENT};
    return m->depth ? &m->stack[m->depth - 1] : &nothing;
}

int machine_pop(struct machine *m, enum kind kind, struct value *value)
{
    if (top(m)->kind != kind)
        return raise_error(ValueError, "data.pkl: %s where %s is expected",
                           kind_names[top(m)->kind], kind_names[kind]);
    *value = m->stack[--m->depth];
    return 0;
}

/* since_mark - how many values lie above the last mark */
static int since_mark(const struct machine *m, size_t *n)
{
    for (size_t i = m->depth; i > 0; i--)
        if (m->stack[i - 1].kind == MARK) {
            *n = m->depth - i;
            return 0;
        }
    return raise_error(ValueError, "data.pkl: a mark is missing");
}

/* ---- constants ---- */

static int do_proto(struct machine *m)
{
    uint64_t version;
    if (take_unsigned(m, 1, &version) < 0)
        return -1;
    return version == 2
               ? 0
               : raise_error(ValueError, "data.pkl is of pickle protocol %d, not 2", (int)version);
}

static int do_mark(struct machine *m)
{
    return push_kind(m, MARK);
}

static int do_none(struct machine *m)
{
    return push_kind(m, NONE);
}

static int do_true(struct machine *m)
{
    return push_integer(m, BOOL, 1);
}

static int do_false(struct machine *m)
{
    return push_integer(m, BOOL, 0);
}

static int do_int(struct machine *m)
{
    uint64_t value;
    return take_unsigned(m, 4, &value) < 0 ? -1 : push_integer(m, INT, (int32_t)(uint32_t)value);
}

static int do_int1(struct machine *m)
{
    uint64_t value;
    return take_unsigned(m, 1, &value) < 0 ? -1 : push_integer(m, INT, (int64_t)value);
}

static int do_int2(struct machine *m)
{
    uint64_t value;
    return take_unsigned(m, 2, &value) < 0 ? -1 : push_integer(m, INT, (int64_t)value);
}

static int do_long1(struct machine *m)
{
    uint64_t bytes, value;
    if (take_unsigned(m, 1, &bytes) < 0)
        return -1;
    if (bytes > 8)
        return raise_error(ValueError, "data.pkl: an integer of more than 64 bits");
    if (take_unsigned(m, (int)bytes, &value) < 0)
        return -1;
    if (bytes > 0 && bytes < 8 && value >> (8 * bytes - 1))
        value |= UINT64_MAX << 8 * bytes; /* a negative number */
    return push_integer(m, INT, (int64_t)value);
}

static int do_text(struct machine *m)
{
    uint64_t n;
    if (take_unsigned(m, 4, &n) < 0)
        return -1;
    const char *bytes = (const char *)take(m, n);
    if (!bytes || pt_text_check(bytes, n) < 0)
        return -1;
    const char *text = scope_printf("%.*s", (int)n, bytes);
    return text ? machine_push(m, (struct value){.kind = TEXT, .text = text}) : -1;
}

/* GLOBAL has two lines, the module and the name in it. */
static int do_global(struct machine *m)
{
    const char *module = (const char *)m->at;
    const char *line1 = memchr(module, '\n', (size_t)(m->end - m->at));
    const char *name = line1 ? line1 + 1 : NULL;
    const char *line2 = name ? memchr(name, '\n', (size_t)((const char *)m->end - name)) : NULL;
    if (!line2)
        return raise_error(ValueError, "data.pkl ends in the middle of a global");
    const int module_length = (int)(line1 - module), name_length = (int)(line2 - name);
    if (pt_text_check(module, (size_t)module_length) < 0 ||
        pt_text_check(name, (size_t)name_length) < 0)
        return -1;
    m->at = (const uint8_t *)line2 + 1;
    const char *full = scope_printf("%.*s.%.*s", module_length, module, name_length, name);
    return full ? machine_global(m, full) : -1;
}

/* ---- containers ---- */

struct sequence *sequence_new(size_t capacity)
{
    struct sequence *sequence = scope_alloc(sizeof *sequence + capacity * sizeof *sequence->at);
    if (sequence)
        *sequence = (struct sequence){0, capacity, (struct value *)(sequence + 1)};
    return sequence;
}

/* move_values - the topmost n values of the stack to the end of a sequence */
static int move_values(struct machine *m, struct sequence *to, size_t n)
{
    if (to->n + n > to->capacity) {
        struct sequence *larger = sequence_new(2 * (to->n + n));
        if (!larger)
            return -1;
        memcpy(larger->at, to->at, to->n * sizeof *to->at);
        larger->n = to->n;
        *to = *larger;
    }
    m->depth -= n;
    memcpy(to->at + to->n, m->stack + m->depth, n * sizeof *to->at);
    to->n += n;
    return 0;
}

static int push_sequence(struct machine *m, enum kind kind, struct sequence *sequence)
{
    return sequence ? machine_push(m, (struct value){.kind = kind, .sequence = sequence}) : -1;
}

static int do_empty_dict(struct machine *m)
{
    return push_sequence(m, DICT, sequence_new(0));
}

static int do_empty_tuple(struct machine *m)
{
    return push_sequence(m, TUPLE, sequence_new(0));
}

static int do_tuple(struct machine *m)
{
    size_t n;
    struct value mark;
    if (since_mark(m, &n) < 0)
        return -1;
    struct sequence *tuple = sequence_new(n);
    if (!tuple || move_values(m, tuple, n) < 0 || machine_pop(m, MARK, &mark) < 0)
        return -1;
    return push_sequence(m, TUPLE, tuple);
}

static int short_tuple(struct machine *m, size_t n)
{
    if (m->depth < n)
        return raise_error(ValueError, "data.pkl: a tuple of more values than there are");
    struct sequence *tuple = sequence_new(n);
    return tuple && move_values(m, tuple, n) == 0 ? push_sequence(m, TUPLE, tuple) : -1;
}

static int do_tuple1(struct machine *m)
{
    return short_tuple(m, 1);
}

static int do_tuple2(struct machine *m)
{
    return short_tuple(m, 2);
}

static int do_tuple3(struct machine *m)
{
    return short_tuple(m, 3);
}

static int set_items(struct machine *m, size_t n, bool marked)
{
    const size_t below = n + (marked ? 1 : 0) + 1;
    if (m->depth < below || m->stack[m->depth - below].kind != DICT || n % 2)
        return raise_error(ValueError, "data.pkl: items that belong to no dictionary");
    struct sequence *dict = m->stack[m->depth - below].sequence;
    for (size_t i = m->depth - n; i < m->depth; i += 2)
        if (m->stack[i].kind != TEXT)
            return raise_error(ValueError, "data.pkl: a dictionary's key is %s, not a string",
                               kind_names[m->stack[i].kind]);
    return move_values(m, dict, n);
}

static int do_set_items(struct machine *m)
{
    size_t n;
    struct value mark;
    return since_mark(m, &n) < 0 || set_items(m, n, true) < 0 ? -1 : machine_pop(m, MARK, &mark);
}

static int do_set_item(struct machine *m)
{
    return set_items(m, 2, false);
}

/* ---- the memo ---- */

static int put(struct machine *m, uint64_t index)
{
    if (index >= m->size || top(m)->kind == ABSENT || top(m)->kind == MARK)
        return raise_error(ValueError, "data.pkl: nothing to remember, or too much");
    m->memo[index] = *top(m);
    return 0;
}

static int get(struct machine *m, uint64_t index)
{
    if (index >= m->size || m->memo[index].kind == ABSENT)
        return raise_error(ValueError, "data.pkl refers to something that it did not remember");
    return machine_push(m, m->memo[index]);
}

static int do_put(struct machine *m)
{
    uint64_t index;
    return take_unsigned(m, 1, &index) < 0 ? -1 : put(m, index);
}

static int do_long_put(struct machine *m)
{
    uint64_t index;
    return take_unsigned(m, 4, &index) < 0 ? -1 : put(m, index);
}

static int do_get(struct machine *m)
{
    uint64_t index;
    return take_unsigned(m, 1, &index) < 0 ? -1 : get(m, index);
}

static int do_long_get(struct machine *m)
{
    uint64_t index;
    return take_unsigned(m, 4, &index) < 0 ? -1 : get(m, index);
}

/* ---- the run ---- */

static int do_stop(struct machine *m)
{
    if (m->depth != 1 || m->at != m->end)
        return raise_error(ValueError, "data.pkl stops with something left over");
    m->result = m->stack[0];
    return 0;
}

static int (*const opcodes[256])(struct machine *m) = {
    [0x80] = do_proto,      ['.'] = do_stop,
    ['('] = do_mark,        ['N'] = do_none,
    [0x88] = do_true,       [0x89] = do_false,
    ['J'] = do_int,         ['K'] = do_int1,
    ['M'] = do_int2,        [0x8a] = do_long1,
    ['X'] = do_text,        ['c'] = do_global,
    ['}'] = do_empty_dict,  [')'] = do_empty_tuple,
    ['t'] = do_tuple,       [0x85] = do_tuple1,
    [0x86] = do_tuple2,     [0x87] = do_tuple3,
    ['u'] = do_set_items,   ['s'] = do_set_item,
    ['q'] = do_put,         ['r'] = do_long_put,
    ['h'] = do_get,         ['j'] = do_long_get,
    ['R'] = machine_reduce, ['Q'] = machine_persistent_id,
    ['b'] = machine_build,
};

static int run(struct machine *m)
{
    while (m->result.kind == ABSENT) {
        const uint8_t *opcode = take(m, 1);
        if (!opcode)
            return -1;
        if (!opcodes[*opcode])
            return raise_error(ValueError, "data.pkl has opcode 0x%02x, which is not allowed here",
                               *opcode);
        if (opcodes[*opcode](m) < 0)
            return -1;
    }
    return 0;
}

static struct pt_items *items_of(const struct value *root)
{
    if (root->kind != DICT)
        return raise_null(ValueError, "the file holds %s, not a dictionary of tensors",
                          kind_name(root->kind));
    const struct sequence *dict = root->sequence;
    struct pt_items *items = scope_alloc(sizeof *items + dict->n / 2 * sizeof *items->at);
    if (!items)
        return NULL;
    *items = (struct pt_items){(int64_t)dict->n / 2, (struct pt_item *)(items + 1)};
    for (size_t i = 0; i < dict->n; i += 2) {
        const struct value *key = &dict->at[i], *value = &dict->at[i + 1];
        if (value->kind != TENSOR)
            return raise_null(ValueError, "\"%s\" is %s, not a tensor", key->text,
                              kind_name(value->kind));
        items->at[i / 2] = (struct pt_item){key->text, value->tensor};
    }
    return items;
}

struct pt_items *pt_unpickle(const struct pt_entry *pickle)
{
    if (pickle->n > PT_PICKLE_MAX_BYTES)
        return raise_null(ValueError, "data.pkl has %zu bytes; at most %d are read", pickle->n,
                          PT_PICKLE_MAX_BYTES);
    struct machine m = {.at = pickle->bytes, .size = pickle->n};
    m.end = m.at + pickle->n;
    m.stack = scope_alloc(m.size * sizeof *m.stack);
    m.memo = scope_alloc(m.size * sizeof *m.memo);
    return m.stack && m.memo && run(&m) == 0 ? items_of(&m.result) : NULL;
}
