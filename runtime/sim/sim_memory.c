/* sim_memory.c - device memory: allocations, and what an address is.
 *
 * A device address is a number and no memory: nothing is mapped there. What the CPU computes on, an
 * allocation's view, is memory of malloc somewhere else, so the sanitizers guard its ends. A freed
 * address is not given out again, so its use is always told from the use of a new allocation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/sim/sim_internal.h"
#include "runtime/sim/sim_kernel.h"
#include "runtime/sim/sim_model.h"

enum {
    ALIGNMENT = 512,
    POISON = 0xff, /* bytes of fresh memory: NaN, whatever the type */
    USES_MAX = 1024
};

struct allocation {
    uint64_t address; /* of pinned memory: the view itself */
    size_t bytes;
    char *view;
    struct CUstream_st *user; /* whose use ends last, and when */
    double used_until;
};

/* By address. Under the lock, all of them. */
struct table {
    struct allocation *at;
    int n, capacity;
    uint64_t next; /* address to give out, as an offset in the device's range */
    size_t used;
};
static struct table devices[SIM_DEVICES], pinned;

/* The device memory that the calling thread's operation uses. Of more than that the rest is not
 * watched. */
static _Thread_local struct {
    int n;
    uint64_t at[USES_MAX];
} uses;

/* ---- the tables, with the lock held ---- */

/* table_place - how many allocations begin at or below the address */
static int table_place(const struct table *table, uint64_t address)
{
    int low = 0, high = table->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (table->at[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct allocation *table_find(const struct table *table, uint64_t address)
{
    int place = table_place(table, address);
    struct allocation *found = place > 0 ? &table->at[place - 1] : NULL;
    return found && address - found->address < found->bytes ? found : NULL;
}

static bool table_add(struct table *table, struct allocation allocation)
{
    if (table->n == table->capacity) {
        int capacity = table->capacity ? 2 * table->capacity : 64;
        struct allocation *at = realloc(table->at, (size_t)capacity * sizeof *at);
        if (!at)
            return false;
        table->at = at;
        table->capacity = capacity;
    }
    int place = table_place(table, allocation.address);
    struct allocation *gap = &table->at[place];
    memmove(gap + 1, gap, (size_t)(table->n++ - place) * sizeof *gap);
    *gap = allocation;
    table->used += allocation.bytes;
    return true;
}

static void table_remove(struct table *table, struct allocation *gone)
{
    table->used -= gone->bytes;
    memmove(gone, gone + 1, (size_t)(&table->at[--table->n] - gone) * sizeof *gone);
}

/* ---- what an address is ---- */

int sim_device_of(const void *address)
{
    return sim_address_device((uint64_t)(uintptr_t)address);
}

static void note_use(const struct allocation *allocation)
{
    if (uses.n < USES_MAX)
        uses.at[uses.n++] = allocation->address;
}

/* With the lock held. */
static enum sim_range find(int device, uint64_t address, size_t bytes, void **view)
{
    int owner = sim_address_device(address);
    const struct table *table = owner < 0 ? &pinned : &devices[owner];
    const struct allocation *found = table_find(table, address);
    *view = owner < 0 ? (void *)(uintptr_t)address : NULL;
    if (!found)
        return owner < 0 ? SIM_HOST_MEMORY : SIM_NOT_ALLOCATED;
    if (owner >= 0 && owner != device)
        return SIM_OTHER_DEVICE;
    uint64_t offset = address - found->address;
    if (bytes > found->bytes - offset)
        return SIM_TOO_SHORT;
    *view = found->view + offset;
    if (owner < 0)
        return SIM_PINNED_MEMORY;
    note_use(found);
    return SIM_DEVICE_MEMORY;
}

enum sim_range sim_find(int device, const void *address, size_t bytes, void **view)
{
    pthread_mutex_lock(&sim_lock);
    enum sim_range range = find(device, (uint64_t)(uintptr_t)address, bytes, view);
    pthread_mutex_unlock(&sim_lock);
    return range;
}

void sim_operation_begin(void)
{
    uses.n = 0;
}

void sim_operation_end(cudaStream_t stream, double time)
{
    pthread_mutex_lock(&sim_lock);
    for (int i = 0; i < uses.n; i++) {
        struct allocation *used = table_find(&devices[sim_address_device(uses.at[i])], uses.at[i]);
        if (used && used->used_until <= time) {
            used->used_until = time;
            used->user = stream;
        }
    }
    uses.n = 0;
    pthread_mutex_unlock(&sim_lock);
}

const char *sim_describe_address(const void *address, char *text, size_t bytes)
{
    uint64_t number = (uint64_t)(uintptr_t)address;
    int device = sim_address_device(number);
    pthread_mutex_lock(&sim_lock);
    const struct allocation *in = table_find(device < 0 ? &pinned : &devices[device], number);
    bool was_given =
        device >= 0 && (number - SIM_ADDRESS_BASE) % SIM_ADDRESS_SPAN < devices[device].next;
    if (device < 0)
        snprintf(text, bytes, "%s host memory %p", in ? "pinned" : "ordinary", address);
    else if (in)
        snprintf(text, bytes, "memory of cuda:%d, %" PRIu64 " bytes into %zu allocated", device,
                 number - in->address, in->bytes);
    else
        snprintf(text, bytes, "memory of cuda:%d that %s", device,
                 was_given ? "was freed" : "was never allocated");
    pthread_mutex_unlock(&sim_lock);
    return text;
}

/* ---- device allocations ---- */

/* Whatever else the process maps, it must not come to lie where device addresses point. Where the
 * range cannot be kept free, it still is in practice: it is far from everything else. */
static void keep_ranges_free(void)
{
#ifdef MAP_FIXED_NOREPLACE
    for (int device = 0; device < SIM_DEVICES; device++)
        (void)mmap((void *)(uintptr_t)(SIM_ADDRESS_BASE + (uint64_t)device * SIM_ADDRESS_SPAN),
                   SIM_ADDRESS_SPAN, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
#endif
}

static char *view_new(size_t bytes)
{
    void *view;
    if (posix_memalign(&view, ALIGNMENT, bytes) != 0)
        return NULL;
    return memset(view, POISON, bytes);
}

/* With the lock held. At least one byte between two allocations belongs to none. */
static bool allocate(struct table *table, int device, char *view, size_t bytes, void **memory)
{
    uint64_t span = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    if (bytes > sim_gpu.memory_bytes - table->used || span > SIM_ADDRESS_SPAN - table->next)
        return false;
    uint64_t address = SIM_ADDRESS_BASE + (uint64_t)device * SIM_ADDRESS_SPAN + table->next;
    if (!table_add(table, (struct allocation){.address = address, .bytes = bytes, .view = view}))
        return false;
    table->next += span;
    *memory = (void *)(uintptr_t)address;
    return true;
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error || (error = sim_stream_check(stream, "cudaMallocAsync")))
        return error;
    pthread_once(&once, keep_ranges_free);
    bytes = bytes ? bytes : 1;
    struct table *table = &devices[stream->device];
    char *view = bytes <= sim_gpu.memory_bytes ? view_new(bytes) : NULL;
    pthread_mutex_lock(&sim_lock);
    bool done = view && allocate(table, stream->device, view, bytes, memory);
    size_t used = table->used;
    pthread_mutex_unlock(&sim_lock);
    if (done)
        return cudaSuccess;
    free(view);
    return sim_fail(cudaErrorMemoryAllocation,
                    "out of memory: %zu bytes on device %d, of whose %zu bytes %zu are in use",
                    bytes, stream->device, sim_gpu.memory_bytes, used);
}

/* With the lock held. returns: the view, or NULL with the error */
static char *release(struct table *table, const void *memory, cudaStream_t stream, double now,
                     const char **wrong)
{
    uint64_t address = (uint64_t)(uintptr_t)memory;
    struct allocation *gone = table_find(table, address);
    *wrong = !gone || gone->address != address ? "is not the start of an allocation" : NULL;
    if (!*wrong && gone->user != stream && gone->used_until > now)
        *wrong = "another stream still works on, and nothing has made this one wait for it";
    if (*wrong)
        return NULL;
    char *view = gone->view;
    table_remove(table, gone);
    return view;
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error || (error = sim_stream_check(stream, "cudaFreeAsync")))
        return error;
    char text[120];
    const char *wrong = "does not belong to the stream's device", *what;
    what = sim_describe_address(memory, text, sizeof text);
    double now = sim_stream_ready(stream);
    char *view = NULL;
    pthread_mutex_lock(&sim_lock);
    if (sim_device_of(memory) == stream->device)
        view = release(&devices[stream->device], memory, stream, now, &wrong);
    pthread_mutex_unlock(&sim_lock);
    if (!view)
        return sim_fail(cudaErrorInvalidValue, "cudaFreeAsync on device %d of %s: it %s",
                        stream->device, what, wrong);
    free(view);
    return cudaSuccess;
}

/* ---- pools ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    if (device < 0 || device >= SIM_DEVICES)
        return sim_fail(cudaErrorInvalidDevice, "there is no device %d", device);
    *pool = (cudaMemPool_t)&devices[device];
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    (void)pool;
    (void)value; /* nothing is kept for later, so nothing is released */
    return attribute == cudaMemPoolAttrReleaseThreshold
               ? cudaSuccess
               : sim_fail(cudaErrorInvalidValue, "attribute %d of a pool cannot be set", attribute);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *accesses,
                                 size_t count)
{
    (void)pool;
    for (size_t i = 0; i < count; i++)
        if (accesses[i].location.type != cudaMemLocationTypeDevice ||
            (unsigned int)accesses[i].location.id >= SIM_DEVICES)
            return sim_fail(cudaErrorInvalidValue, "access to a pool for what is no device");
    return sim_has_peer_access()
               ? cudaSuccess
               : sim_fail(cudaErrorInvalidDevice, "this pair of GPUs has no peer access");
}

/* ---- pinned host memory ---- */

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    cudaError_t error = sim_entered(sim_host_costs.call);
    if (error)
        return error;
    if (flags & ~(unsigned int)cudaHostAllocPortable)
        return sim_fail(cudaErrorNotSupported, "cudaHostAlloc with flags %#x", flags);
    char *view = view_new(bytes ? bytes : 1);
    pthread_mutex_lock(&sim_lock);
    bool done = view && table_add(&pinned, (struct allocation){.address = (uint64_t)(uintptr_t)view,
                                                               .bytes = bytes ? bytes : 1,
                                                               .view = view});
    pthread_mutex_unlock(&sim_lock);
    if (!done) {
        free(view);
        return sim_fail(cudaErrorMemoryAllocation, "out of memory: %zu bytes of pinned memory",
                        bytes);
    }
    *memory = view;
    return cudaSuccess;
}
