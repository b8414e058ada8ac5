#ifndef SIM_ADDRESS_H
#define SIM_ADDRESS_H
/* sim_address.h - the addresses of simulated device memory.
 *
 * Each device has a range of its own, in which nothing is ever mapped: host code that dereferences
 * a device pointer faults at an address that tells the device. The range lies outside what malloc,
 * mmap and the sanitizers hand out on 64-bit systems. For the crash report too, which knows nothing
 * else of the simulation. */
#include <stdint.h>

enum { SIM_DEVICES = 2 };

#define SIM_ADDRESS_BASE UINT64_C(0x680000000000)
#define SIM_ADDRESS_SPAN (UINT64_C(1) << 42) /* bytes of address space per device */

/* sim_address_device - the device that an address belongs to, or -1 */
static inline int sim_address_device(uint64_t address)
{
    uint64_t offset = address - SIM_ADDRESS_BASE;
    return offset < SIM_DEVICES * SIM_ADDRESS_SPAN ? (int)(offset / SIM_ADDRESS_SPAN) : -1;
}
#endif
