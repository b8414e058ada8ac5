/* What a subject records arrives as it was; what is no record is refused. */
#define _GNU_SOURCE
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grading/observations.h"
#include "runtime/autograd.h"
#include "runtime/ops.h"
#include "runtime/tensor_internal.h"
#include "tests/suite.h"

/* ---- a subject that records into a file, and the bytes it wrote ---- */

struct recording {
    FILE *file;
    struct subject subject;
};

static struct recording recording_begin(void)
{
    struct recording r = {.file = tmpfile()};
    ck_assert_ptr_nonnull(r.file);
    r.subject = (struct subject){
        .rank = 1, .world_size = 3, .observations = fileno(r.file), .pid = getpid()};
    return r;
}

static unsigned char *recording_end(struct recording *r, size_t *n)
{
    off_t size = lseek(r->subject.observations, 0, SEEK_END);
    unsigned char *bytes = scope_alloc((size_t)size);
    ck_assert_int_eq(pread(r->subject.observations, bytes, (size_t)size, 0), size);
    fclose(r->file);
    *n = (size_t)size;
    return bytes;
}

static struct observations *decode_recording(struct recording *r)
{
    size_t n;
    const unsigned char *bytes = recording_end(r, &n);
    struct observations *o = observations_decode(bytes, n, 1, 3);
    ck_assert_ptr_nonnull(o);
    return o;
}

/* ---- values ---- */

START_TEST(test_numbers)
{
    SCOPE;
    struct recording r = recording_begin();
    observe_int(&r.subject, INT64_MIN, "int %d", 7);
    observe_ints(&r.subject, (const int64_t[]){3, -1, INT64_MAX}, 3, "ints");
    observe_ints(&r.subject, NULL, 0, "no ints");
    observe_number(&r.subject, 0.1, "number");
    observe_number(&r.subject, NAN, "nan");
    observe_end(&r.subject);
    struct observations *o = decode_recording(&r);
    int64_t n;
    ck_assert_int_eq(observed_int(o, "int 7", 0), INT64_MIN);
    ck_assert_int_eq(observed_ints(o, "ints", &n)[2], INT64_MAX);
    ck_assert_int_eq(n, 3);
    ck_assert_ptr_nonnull(observed_ints(o, "no ints", &n));
    ck_assert_int_eq(n, 0);
    ck_assert(observed_number(o, "number", 0) == 0.1);
    ck_assert(isnan(observed_number(o, "nan", 0)));
    ck_assert(observations_complete(o));
    ck_assert_ptr_null(observations_failure(o));
    ck_assert_int_eq(observations_rank(o), 1);
    ck_assert_int_eq(observations_world_size(o), 3);
    observations_free(o);
}
END_TEST

START_TEST(test_texts_and_errors)
{
    SCOPE;
    struct recording r = recording_begin();
    observe_text(&r.subject, "über", "text");
    observe_text(&r.subject, NULL, "no text");
    (void)raise_error(ValueError, "size is %d", -3);
    observe_error(&r.subject, "error");
    ck_assert(!error_occurred());
    observe_error(&r.subject, "no error");
    struct observations *o = decode_recording(&r);
    const char *type, *message;
    ck_assert_str_eq(observed_text(o, "text"), "über");
    ck_assert_ptr_null(observed_text(o, "no text"));
    ck_assert_int_eq(observed_kind(o, "no text"), OBSERVATION_ABSENT);
    ck_assert(observed_error(o, "error", &type, &message));
    ck_assert_str_eq(type, "ValueError");
    ck_assert_str_eq(message, "size is -3");
    ck_assert(observed_error(o, "no error", &type, &message));
    ck_assert_str_eq(type, "");
    ck_assert(!observed_error(o, "text", &type, &message));
    ck_assert(!observations_complete(o));
    observations_free(o);
}
END_TEST

START_TEST(test_tensors_travel_exactly)
{
    SCOPE;
    float values[6] = {0.1F, -0.0F, INFINITY, -3e38F, 1e-45F, NAN};
    struct recording r = recording_begin();
    struct tensor *x = tensor_from(values, SHAPE(2, 3));
    observe_tensor(&r.subject, tensor_set_requires_grad(x, true), "x");
    observe_tensor(&r.subject, tensor_transpose(tensor_detach(x), 0, 1), "transposed");
    observe_tensor(&r.subject, tensor_full(SHAPE(), 1.0 / 3, FLOAT64, CPU), "scalar");
    observe_tensor(&r.subject, tensor_zeros(SHAPE(0, 4), FLOAT32, CPU), "empty");
    observe_tensor(&r.subject, NULL, "absent");
    struct observations *o = decode_recording(&r);
    const struct tensor *got = observed_tensor(o, "x");
    ck_assert_int_eq(memcmp(tensor_data(got), values, sizeof values), 0);
    ck_assert_str_eq(tensor_shape_name(got), "(2, 3)");
    ck_assert(observed_requires_grad(o, "x"));
    ck_assert(!observed_requires_grad(o, "transposed"));
    ck_assert_str_eq(tensor_shape_name(observed_tensor(o, "transposed")), "(3, 2)");
    ck_assert(tensor_get(observed_tensor(o, "transposed"), 0, 1) == (double)-3e38F);
    ck_assert(tensor_item(observed_tensor(o, "scalar")) == 1.0 / 3);
    ck_assert_int_eq(tensor_size(observed_tensor(o, "empty"), 1), 4);
    ck_assert_ptr_null(observed_tensor(o, "absent"));
    ck_assert(device_equal(observed_device(o, "x"), CPU));
    observations_free(o);
}
END_TEST

START_TEST(test_models)
{
    SCOPE;
    struct module *model = small_model();
    struct tensor *bias = module_parameter(module_get(model, "2"), "bias");
    (void)tensor_set_grad(bias, tensor_full(SHAPE(2), 5, FLOAT32, CPU));
    struct recording r = recording_begin();
    observe_parameters(&r.subject, model, "step %d", 1);
    observe_gradients(&r.subject, model, "gradient");
    struct observations *o = decode_recording(&r);
    ck_assert_str_eq(tensor_shape_name(observed_tensor(o, "step 1.0.weight")), "(8, 4)");
    ck_assert(tensor_get(observed_tensor(o, "gradient.2.bias"), 1) == 5);
    ck_assert_int_eq(observed_kind(o, "gradient.0.bias"), OBSERVATION_ABSENT);
    ck_assert_int_eq(observed_kind(o, "gradient.1.bias"), 0);
    observations_free(o);
}
END_TEST

START_TEST(test_failures)
{
    SCOPE;
    struct recording r = recording_begin();
    ck_assert(!subject_went_wrong(&r.subject, "nothing"));
    (void)raise_error(TypeError, "no \xff such");
    ck_assert(subject_went_wrong(&r.subject, "call %d", 2));
    subject_fail(&r.subject, "later");
    struct observations *o = decode_recording(&r);
    ck_assert_str_eq(observations_failure(o), "call 2 raised TypeError: no \xef\xbf\xbd such");
    observations_free(o);
}
END_TEST

START_TEST(test_a_tensor_that_cannot_be_copied_is_a_failure)
{
    SCOPE;
    struct tensor *x = tensor_transpose(tensor_zeros(SHAPE(2, 3), FLOAT32, CPU), 0, 1);
    x->shape[0] = INT64_MAX / 2; /* more than any memory holds */
    struct recording r = recording_begin();
    observe_tensor(&r.subject, x, "x");
    observe_int(&r.subject, 5, "later");
    ck_assert(!error_occurred());
    struct observations *o = decode_recording(&r);
    const char *begins = "copying a tensor to the host raised ";
    ck_assert_int_eq(strncmp(observations_failure(o), begins, strlen(begins)), 0);
    ck_assert_int_eq(observed_kind(o, "x"), 0);
    ck_assert_int_eq(observed_int(o, "later", 0), 5);
    observations_free(o);
}
END_TEST

/* ---- what is not as it should be: looked up ---- */

START_TEST(test_other_kinds_are_absent)
{
    SCOPE;
    struct recording r = recording_begin();
    observe_int(&r.subject, 3, "key");
    struct observations *o = decode_recording(&r);
    int64_t n = 9;
    ck_assert(observed_number(o, "key", -1) == -1);
    ck_assert_ptr_null(observed_ints(o, "key", &n));
    ck_assert_int_eq(n, 0);
    ck_assert_ptr_null(observed_tensor(o, "key"));
    ck_assert_ptr_null(observed_text(o, "key"));
    ck_assert_int_eq(observed_int(o, "kez", 8), 8);
    observations_free(o);
}
END_TEST

/* ---- what is not as it should be: refused ---- */

static void refuse(const void *bytes, size_t n)
{
    ck_assert_ptr_null(observations_decode(bytes, n, 0, 1));
    ck_assert(!error_occurred());
}

START_TEST(test_nothing_is_incomplete)
{
    struct observations *o = observations_decode(NULL, 0, 0, 1);
    ck_assert_ptr_nonnull(o);
    ck_assert(!observations_complete(o));
    ck_assert_int_eq(observed_int(o, "key", 4), 4);
    observations_free(o);
    observations_free(NULL);
}
END_TEST

START_TEST(test_duplicate_keys)
{
    SCOPE;
    struct recording r = recording_begin();
    observe_int(&r.subject, 1, "key");
    observe_text(&r.subject, "two", "other");
    observe_number(&r.subject, 1, "key");
    size_t n;
    const unsigned char *bytes = recording_end(&r, &n);
    refuse(bytes, n);
}
END_TEST

START_TEST(test_records_after_the_end)
{
    SCOPE;
    struct recording r = recording_begin();
    observe_end(&r.subject);
    observe_int(&r.subject, 1, "key");
    size_t n;
    const unsigned char *bytes = recording_end(&r, &n);
    refuse(bytes, n);
}
END_TEST

static unsigned char *every_kind(size_t *n)
{
    struct recording r = recording_begin();
    observe_int(&r.subject, 1, "a");
    observe_ints(&r.subject, (const int64_t[]){1, 2}, 2, "b");
    observe_number(&r.subject, 1, "c");
    observe_text(&r.subject, "text", "d");
    observe_error(&r.subject, "e");
    observe_tensor(&r.subject, tensor_full(SHAPE(2, 3), 1, FLOAT32, CPU), "f");
    observe_tensor(&r.subject, NULL, "g");
    subject_fail(&r.subject, "reason");
    observe_end(&r.subject);
    return recording_end(&r, n);
}

/* Cut anywhere, records are refused, or end between two of them and are incomplete. */
START_TEST(test_cut_anywhere)
{
    SCOPE;
    size_t n;
    const unsigned char *bytes = every_kind(&n);
    int whole = 0;
    for (size_t length = 0; length < n; length++) {
        unsigned char *copy = malloc(length + 1); /* its own block: reading on is seen */
        memcpy(copy, bytes, length);
        struct observations *o = observations_decode(copy, length, 0, 1);
        ck_assert(!o || !observations_complete(o));
        whole += o != NULL;
        observations_free(o);
        free(copy);
    }
    ck_assert_int_eq(whole, 9);
}
END_TEST

/* Any byte changed to anything: decoded or refused, nothing else. */
START_TEST(test_damaged_anywhere)
{
    SCOPE;
    size_t n;
    unsigned char *bytes = every_kind(&n);
    for (size_t at = 0; at < n; at++) {
        unsigned char was = bytes[at];
        for (int value = 0; value < 256; value++) {
            bytes[at] = (unsigned char)value;
            observations_free(observations_decode(bytes, n, 0, 1));
            ck_assert(!error_occurred());
        }
        bytes[at] = was;
    }
}
END_TEST

/* A tensor record with a header of its own: dtype, device kind, requires_grad, ndim, index, sizes.
 */
static void refuse_tensor(int dtype, int kind, int ndim, int32_t index, const int64_t *sizes)
{
    unsigned char bytes[256] = {OBSERVATION_TENSOR, 1, 0, 0, 0, 'x'};
    bytes[6] = (unsigned char)dtype;
    bytes[7] = (unsigned char)kind;
    bytes[9] = (unsigned char)ndim;
    memcpy(bytes + 10, &index, sizeof index);
    memcpy(bytes + 14, sizes, 9 * sizeof *sizes);
    refuse(bytes, sizeof bytes);
}

START_TEST(test_tensors_that_cannot_be)
{
    static const int64_t one[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t huge[9] = {INT64_MAX, 2}, overflow[9] = {1LL << 32, 1LL << 32},
                         negative[9] = {-1}, empty_and_huge[9] = {0, 1LL << 40, 1LL << 40},
                         beyond[9] = {100};
    refuse_tensor(3, 0, 1, 0, one);
    refuse_tensor(255, 0, 1, 0, one);
    refuse_tensor(0, 2, 1, 0, one);
    refuse_tensor(0, 0, 9, 0, one);
    refuse_tensor(0, 1, 1, -1, one);
    refuse_tensor(0, 0, 2, 0, huge);
    refuse_tensor(0, 0, 2, 0, overflow);
    refuse_tensor(0, 0, 1, 0, negative);
    refuse_tensor(0, 0, 3, 0, empty_and_huge);
    refuse_tensor(0, 0, 1, 0, beyond);
}
END_TEST

START_TEST(test_lengths_that_cannot_be)
{
    unsigned char ints[64] = {OBSERVATION_INTS, 1, 0, 0, 0, 'x'};
    static const int64_t counts[] = {-1, INT64_MAX, 1LL << 61, 8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memcpy(ints + 6, &counts[i], sizeof counts[i]);
        refuse(ints, sizeof ints);
    }
    unsigned char text[32] = {OBSERVATION_TEXT, 0xff, 0xff, 0xff, 0xff};
    refuse(text, sizeof text);
    unsigned char unknown[32] = {99};
    refuse(unknown, sizeof unknown);
    unsigned char zero[32] = {0};
    refuse(zero, sizeof zero);
}
END_TEST

START_TEST(test_too_many)
{
    SCOPE;
    enum { RECORD = 9 }; /* ABSENT, a key of four digits */
    size_t count = OBSERVATIONS_MAX_RECORDS + 1;
    unsigned char *bytes = scope_alloc(count * RECORD);
    for (size_t i = 0; i < count; i++) {
        unsigned char record[RECORD] = {OBSERVATION_ABSENT, 4, 0, 0, 0};
        for (int d = 0; d < 4; d++)
            record[5 + d] = (unsigned char)('0' + (i >> (6 * d) & 63));
        memcpy(bytes + i * RECORD, record, RECORD);
    }
    refuse(bytes, count * RECORD);
    struct observations *o = observations_decode(bytes, (count - 1) * RECORD, 0, 1);
    ck_assert_ptr_nonnull(o);
    observations_free(o);
    refuse(bytes, (size_t)OBSERVATIONS_MAX_BYTES + 1); /* refused before a byte is read */
}
END_TEST

static Suite *observations_suite(void)
{
    Suite *suite = suite_create("observations");
    TCase *values = tcase_create("values");
    tcase_set_timeout(values, 60);
    tcase_add_test(values, test_numbers);
    tcase_add_test(values, test_texts_and_errors);
    tcase_add_test(values, test_tensors_travel_exactly);
    tcase_add_test(values, test_models);
    tcase_add_test(values, test_failures);
    tcase_add_test(values, test_a_tensor_that_cannot_be_copied_is_a_failure);
    tcase_add_test(values, test_other_kinds_are_absent);
    suite_add_tcase(suite, values);
    TCase *refused = tcase_create("refused");
    tcase_set_timeout(refused, 60);
    tcase_add_test(refused, test_nothing_is_incomplete);
    tcase_add_test(refused, test_duplicate_keys);
    tcase_add_test(refused, test_records_after_the_end);
    tcase_add_test(refused, test_cut_anywhere);
    tcase_add_test(refused, test_damaged_anywhere);
    tcase_add_test(refused, test_tensors_that_cannot_be);
    tcase_add_test(refused, test_lengths_that_cannot_be);
    tcase_add_test(refused, test_too_many);
    suite_add_tcase(suite, refused);
    return suite;
}

int main(void)
{
    return suite_run(observations_suite());
}
