#ifndef RUNTIME_SERIALIZE_H
#define RUNTIME_SERIALIZE_H
/* serialize.h - PyTorch's own file format for a flat dictionary of dense tensors. */
#include "runtime/nn.h"

/* tensors_save - write name -> tensor to `path`, readable by torch.load(path, weights_only=True).
 * Values of any device are stored as CPU tensors. The file appears whole or not at all: it is
 * written beside `path` and renamed.
 * errors: -1; NULL passes through; ValueError for a duplicate name or one that is no UTF-8; OSError
 *         naming the path
 * source: torch.save(dict, path) */
int tensors_save(const struct named_tensors *tensors, const char *path);

/* tensors_load - read such a file, whether written by tensors_save or by torch.save; CPU tensors in
 * the file's order, borrowed from the scope
 * errors: NULL, with OSError if it cannot be read; ValueError if it is truncated, corrupt, or holds
 *         anything but a flat dictionary of dense tensors of a known dtype
 * source: torch.load(path, map_location="cpu", weights_only=True)
 *
 * Nothing in a file is executed. */
struct named_tensors *tensors_load(const char *path);
#endif
