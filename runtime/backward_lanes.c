/* backward_lanes.c - which node runs next, and in which thread.
 *
 * The nodes that one thread made form a lane; those of a lane run one at a time, the latest made
 * first. Lanes are no threads: a thread takes a node of any lane that nobody is running, of the one
 * that it ran last if possible. It calls another thread only when it leaves a lane behind that
 * could run, so a graph whose stages wait for each other anyway is gone through without any.
 *
 * Late rules belong to no lane: a thread that finds no lane to go on with takes the one that
 * another had to run next, who goes on in its lane meanwhile. */
#include <stdlib.h>

#include "runtime/backward_internal.h"
#include "runtime/error.h"
#include "runtime/scope.h"

/* What other lanes than the largest must have to do, in elements of gradients, before a thread is
 * worth its start: that takes as long as some 50,000 elements in the quickest operation. */
enum { WORTH_A_THREAD = 1 << 16 };

enum { TARGET_LOCKS = 64, NOBODY = -1 };

/* The threads that run a plan with several lanes. */
struct crew {
    pthread_mutex_t mutex; /* of all that follows, and of the lanes */
    pthread_cond_t wake;
    int nodes_left, idle, threads; /* threads: without the caller */
    pthread_t thread[LANES_MAX];
    int late, late_count; /* the targets whose late rules were given away, and nobody took yet */
    bool failed;
    struct error *error;

    pthread_mutex_t hooks;
    pthread_mutex_t target[TARGET_LOCKS]; /* a target shares its lock with others */
};

/* ---- a lane's heap ---- */

static bool goes_first(const struct ready *a, const struct ready *b)
{
    return a->sequence != b->sequence ? a->sequence > b->sequence : a->place > b->place;
}

static void heap_push(struct lane *lane, struct ready entry)
{
    int at = lane->ready_count++;
    for (int up; at > 0 && goes_first(&entry, &lane->ready[up = (at - 1) / 2]); at = up)
        lane->ready[at] = lane->ready[up];
    lane->ready[at] = entry;
}

static int heap_pop(struct lane *lane)
{
    struct ready *heap = lane->ready;
    int first = heap[0].target, n = --lane->ready_count, at = 0;
    struct ready entry = heap[n];
    for (int down; (down = 2 * at + 1) < n; at = down) {
        down += down + 1 < n && goes_first(&heap[down + 1], &heap[down]);
        if (!goes_first(&heap[down], &entry))
            break;
        heap[at] = heap[down];
    }
    heap[at] = entry;
    return first;
}

/* ---- opening and closing ---- */

static struct crew *crew_new(int nodes)
{
    struct crew *crew = calloc(1, sizeof *crew);
    if (!crew)
        return raise_null(MemoryError, "out of memory for backward");
    crew->nodes_left = nodes;
    crew->late = NOBODY;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->wake, NULL);
    pthread_mutex_init(&crew->hooks, NULL);
    for (int i = 0; i < TARGET_LOCKS; i++)
        pthread_mutex_init(&crew->target[i], NULL);
    return crew;
}

static void crew_free(struct crew *crew)
{
    pthread_mutex_destroy(&crew->mutex);
    pthread_cond_destroy(&crew->wake);
    pthread_mutex_destroy(&crew->hooks);
    for (int i = 0; i < TARGET_LOCKS; i++)
        pthread_mutex_destroy(&crew->target[i]);
    free(crew);
}

static int64_t work_of(const struct node *node)
{
    int64_t work = 0;
    for (int i = 0; i < node->inputs; i++) {
        int64_t elements = 1;
        for (int d = 0; d < node->edges[i].ndim; d++)
            elements *= node->edges[i].shape[d];
        work += elements;
    }
    return work;
}

/* threads_pay - is there enough to do outside of the largest lane? What devices are asked to do,
 * they do later: one thread keeps them all busy. */
static bool threads_pay(struct plan *plan)
{
    int64_t all = 0, largest = 0;
    if (plan->lane_count < 2 || plan->on_device)
        return false;
    for (int i = 0; i < plan->targets; i++)
        if (plan->target[i].node)
            plan->lane[plan->target[i].lane].work += work_of(plan->target[i].node);
    for (int i = 0; i < plan->lane_count; i++) {
        all += plan->lane[i].work;
        largest = plan->lane[i].work > largest ? plan->lane[i].work : largest;
    }
    return all - largest >= WORTH_A_THREAD;
}

int lanes_open(struct plan *plan)
{
    plan->ready =
        plan->nodes <= ROOM ? plan->room->ready : malloc((size_t)plan->nodes * sizeof *plan->ready);
    if (!plan->ready)
        return raise_error(MemoryError, "out of memory for backward");
    struct ready *room = plan->ready;
    for (int i = 0; i < plan->lane_count; room += plan->lane[i++].nodes)
        plan->lane[i].ready = room;
    if (!threads_pay(plan))
        return 0;
    plan->crew = crew_new(plan->nodes);
    return plan->crew ? 0 : -1;
}

void lanes_close(struct plan *plan)
{
    if (plan->crew)
        crew_free(plan->crew);
    if (plan->ready != plan->room->ready)
        free(plan->ready);
}

static pthread_mutex_t *locked(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    return lock;
}

pthread_mutex_t *lanes_lock_target(struct plan *plan, int target)
{
    return plan->crew ? locked(&plan->crew->target[target % TARGET_LOCKS]) : NULL;
}

pthread_mutex_t *lanes_lock_hooks(struct plan *plan)
{
    return plan->crew ? locked(&plan->crew->hooks) : NULL;
}

void lanes_unlock(pthread_mutex_t *lock)
{
    if (lock)
        pthread_mutex_unlock(lock);
}

/* ---- one thread ---- */

/* A device's queue has the nodes of all lanes. Numbers of different threads are compared by what
 * each thread has made of this graph: what it made before must not make its nodes come first. In
 * the CPU's memory, where no thread pays, the plan's own order does: sums never wait. */
void lanes_push(struct plan *plan, int target)
{
    const struct target *t = &plan->target[target];
    struct ready entry = {t->node->sequence - plan->lane[t->lane].first, t->place, target};
    if (plan->crew) {
        pthread_mutex_lock(&plan->crew->mutex);
        heap_push(&plan->lane[t->lane], entry);
        pthread_mutex_unlock(&plan->crew->mutex);
        return;
    }
    if (!plan->on_device)
        entry.sequence = 0;
    heap_push(&plan->lane[0], entry);
}

static int run_alone(struct plan *plan)
{
    int status = 0;
    while (status == 0 && plan->lane[0].ready_count > 0)
        status = plan_run_node(plan, heap_pop(&plan->lane[0]));
    return status;
}

/* ---- several threads ---- */

static bool lane_can_run(const struct lane *lane)
{
    return lane->ready_count > 0 && !lane->running;
}

/* next_lane - one that can run, `last` if possible; NULL if there is none */
static struct lane *next_lane(struct plan *plan, struct lane *last)
{
    if (last && lane_can_run(last))
        return last;
    for (int i = 0; i < plan->lane_count; i++)
        if (lane_can_run(&plan->lane[i]))
            return &plan->lane[i];
    return NULL;
}

static void *crew_main(void *plan);

/* wake_one - or start one. If none can be had, those that are there do it all. Under the mutex, and
 * never once a rule has failed: lanes_run joins those that are there by then. */
static void wake_one(struct plan *plan)
{
    struct crew *crew = plan->crew;
    if (crew->idle > 0)
        pthread_cond_signal(&crew->wake);
    else if (crew->threads + 1 < plan->lane_count)
        crew->threads += !pthread_create(&crew->thread[crew->threads], NULL, crew_main, plan);
}

bool lanes_give_away(struct plan *plan, int target)
{
    struct crew *crew = plan->crew;
    if (!crew)
        return false;
    pthread_mutex_lock(&crew->mutex);
    bool taken =
        !crew->failed && crew->late_count < crew->idle + plan->lane_count - 1 - crew->threads;
    if (taken) {
        plan->target[target].next_late = crew->late;
        crew->late = target;
        crew->late_count++;
        wake_one(plan);
    }
    pthread_mutex_unlock(&crew->mutex);
    return taken;
}

/* stop_for - the first error is kept, from whichever thread */
static void stop_for(struct crew *crew, struct error *error)
{
    if (crew->failed)
        error_free(error);
    else
        crew->error = error;
    crew->failed = true;
}

static void node_ended(struct crew *crew, int status)
{
    crew->nodes_left -= status <= 0; /* of 1, the late rule is left */
    if (status < 0)
        stop_for(crew, error_take());
}

static void run_next_of(struct plan *plan, struct lane *lane)
{
    struct crew *crew = plan->crew;
    int target = heap_pop(lane);
    lane->running = true;
    if (next_lane(plan, NULL))
        wake_one(plan);
    pthread_mutex_unlock(&crew->mutex);
    int status = plan_run_node(plan, target);
    pthread_mutex_lock(&crew->mutex);
    lane->running = false;
    node_ended(crew, status);
}

static void run_late(struct plan *plan)
{
    struct crew *crew = plan->crew;
    int target = crew->late;
    crew->late = plan->target[target].next_late;
    crew->late_count--;
    pthread_mutex_unlock(&crew->mutex);
    int status = plan_run_late(plan, target);
    pthread_mutex_lock(&crew->mutex);
    node_ended(crew, status);
}

static void crew_work(struct plan *plan)
{
    struct crew *crew = plan->crew;
    struct lane *lane = NULL;
    pthread_mutex_lock(&crew->mutex);
    while (!crew->failed && crew->nodes_left > 0) {
        lane = next_lane(plan, lane);
        if (lane) {
            run_next_of(plan, lane);
        } else if (crew->late != NOBODY) {
            run_late(plan);
        } else {
            crew->idle++;
            pthread_cond_wait(&crew->wake, &crew->mutex);
            crew->idle--;
        }
    }
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->mutex);
}

static void *crew_main(void *plan)
{
    SCOPE;
    NO_GRAD;
    crew_work(plan);
    return NULL;
}

int lanes_run(struct plan *plan)
{
    struct crew *crew = plan->crew;
    if (plan->nodes == 0) /* the result is a leaf, and has no lane */
        return 0;
    if (!crew)
        return run_alone(plan);
    crew_work(plan);
    pthread_mutex_lock(&crew->mutex);
    int threads = crew->threads; /* none is started from now on */
    pthread_mutex_unlock(&crew->mutex);
    for (int i = 0; i < threads; i++)
        pthread_join(crew->thread[i], NULL);
    return crew->failed ? error_raise(crew->error) : 0;
}
