#ifndef RUNTIME_AUTOGRAD_INTERNAL_H
#define RUNTIME_AUTOGRAD_INTERNAL_H
/* autograd_internal.h - how operations take part in differentiation.
 *
 * An operation computes its result, then calls autograd_record with a rule for going back. A node
 * is made only if a gradient will be wanted. Backward calls each rule once, with grad mode off and
 * a scope of its own, possibly in a thread of its own; what several rules send to one place is
 * added up in an order that depends on the shape of the graph alone. */
#include "runtime/autograd.h"
#include "runtime/object.h"

/* Where a gradient goes: into an operation's result, into a leaf, or nowhere. */
struct edge {
    struct node *node;
    struct tensor *leaf;
    int ndim; /* what shape the input had */
    int64_t shape[TENSOR_MAX_DIMS];

    /* in the backward under way */
    int target;          /* the place of what it leads to */
    int turn;            /* how many contributions are added to the target after this one */
    int part_dim;        /* if it belongs to a slice of the input: along which dimension; else -1 */
    int64_t part_start;  /* and from where */
    struct tensor *sent; /* the contribution, or NULL: nothing */
};

struct saved {
    struct tensor *tensor; /* an alias without history, so that no cycle comes about */
    unsigned version;
};

struct backward; /* the backward of one node, under way */

/* A rule sends a gradient to each input that wants one. errors: -1
 * Where there is a late rule, the first one sends to input 0 and that to the others: what only
 * leaves wait for keeps no thread from going on. */
typedef int backward_fn(struct backward *run);

enum { NODE_SAVED = 3 };

struct node {
    struct object object;
    const char *name;
    backward_fn *rule, *late_rule;
    unsigned lane;               /* of the thread that made it, and of no other */
    unsigned long long sequence; /* how many that thread had made before */
    bool on_device;              /* its result is not in the CPU's memory */
    atomic_ullong claimed_by;    /* the backward that used it; 0: none yet */
    int target;                  /* its place in that */
    double number;
    int64_t integers[2];
    struct saved saved[NODE_SAVED];
    struct node *next_dead;
    int inputs;
    struct edge edges[];
};

struct record {
    const char *name; /* the operation, for messages */
    backward_fn *rule, *late_rule;
    int n; /* inputs */
    struct tensor *const *inputs;
    struct tensor *saved[NODE_SAVED]; /* what the rule needs; NULL entries are allowed */
    double number;
    int64_t integers[2];
};
#define INPUTS(...)                                                                                \
    .n = (int)(sizeof((struct tensor *[]){__VA_ARGS__}) / sizeof(struct tensor *)),                \
    .inputs = (struct tensor *[])                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* autograd_wants - will this input's gradient be asked for? NULL: no */
bool autograd_wants(const struct tensor *x);

/* autograd_record - attach the way back to `output`; NULL passes through. An output that has a
 * history already (an operation in place) gets a new one on top of it.
 * returns: output. errors: NULL, with MemoryError */
struct tensor *autograd_record(struct tensor *output, const struct record *record);

/* autograd_allow_in_place - may x be overwritten with something computed from y (or NULL)?
 * errors: -1, with RuntimeError */
int autograd_allow_in_place(const struct tensor *x, const struct tensor *y);

/* ---- for rules ---- */

struct backward {
    struct node *node;
    struct tensor *gradient; /* of the result; borrowed; other inputs may be sent it unchanged */
    struct plan *plan;
};

/* backward_wants - is input i's gradient needed? */
bool backward_wants(const struct backward *run, int i);

/* backward_saved - what was saved in place i
 * errors: NULL, with RuntimeError if it was changed in place since */
struct tensor *backward_saved(const struct backward *run, int i);

/* backward_send - add to the gradient of input i, when its turn comes; once per input
 * errors: -1; NULL passes through */
int backward_send(struct backward *run, int i, struct tensor *gradient);

/* backward_send_part - the same, for a slice of input i that begins at `start` along `dim` */
int backward_send_part(struct backward *run, int i, struct tensor *gradient, int dim,
                       int64_t start);

/* backward_partial - input i's gradient so far, contiguous, for a rule to add into instead of
 * sending; NULL if there is none or, with an error, no memory. Whether there is one depends on the
 * graph alone. */
struct tensor *backward_partial(struct backward *run, int i);

/* ---- for engines that own gradients ---- */

/* tensor_on_grad_ready - call `hook` in every backward, right after the leaf's gradient received
 * its last contribution of that backward; NULL removes it. A backward calls hooks one at a time,
 * but maybe from another thread than its caller's. An error pending when it returns ends the
 * backward.
 * errors: -1, with ValueError if x is not a leaf that requires grad; NULL passes through
 * source: register_post_accumulate_grad_hook */
int tensor_on_grad_ready(struct tensor *leaf, void (*hook)(void *context, struct tensor *leaf),
                         void *context);

/* ---- between autograd.c and backward*.c ---- */

/* node_clear - let go of what the node saved and of the graph behind it */
void node_clear(struct node *node);

/* edge_init - where x's gradient goes; borrows node and leaf. The edge is zeroed before. */
void edge_init(struct edge *edge, const struct tensor *x);

/* leaf_accumulate - add to the leaf's gradient, taking `gradient` over where possible
 * owns: takes over `gradient`. errors: -1 */
int leaf_accumulate(struct tensor *leaf, struct tensor *gradient);

/* gradient_take - `gradient` itself if nobody else sees it and it is contiguous with no more memory
 * than it needs, else a copy that is
 * owns: takes over `gradient`, returns a reference. errors: NULL */
struct tensor *gradient_take(struct tensor *gradient);

/* gradient_sum - a + b, into the memory of one of them where nobody else sees it
 * owns: takes over a; borrows b, returns a reference. errors: NULL */
struct tensor *gradient_sum(struct tensor *a, struct tensor *b);
#endif
