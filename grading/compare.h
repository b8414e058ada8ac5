#ifndef GRADING_COMPARE_H
#define GRADING_COMPARE_H
/* compare.h - how far two tensors are apart, in words for a person. */
#include "runtime/tensor.h"

/* tensor_difference - compare every element: |got - expected| <= atol + rtol * |expected|; NaN
 * never is close, an infinity only to itself. Tolerances of 0 ask for the same value; -0 is 0.
 * returns: NULL if all are close; otherwise what differs, in the manner of
 *          torch.testing.assert_close: dtypes, shapes, or how many elements, the largest
 * difference, where, got and expected. owns: borrowed from the scope */
const char *tensor_difference(const struct tensor *got, const struct tensor *expected, double rtol,
                              double atol);

/* number_close - the rule for one element */
bool number_close(double got, double expected, double rtol, double atol);
#endif
