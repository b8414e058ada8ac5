/* fuzz_config.c - the ZeRO configuration: the first byte is the number of ranks, then JSON */
#define _GNU_SOURCE
#include <jansson.h>
#include <math.h>

#include "runtime/error.h"
#include "runtime/scope.h"
#include "runtime/zero_internal.h"
#include "tests/fuzz/fuzz.h"

static void expect_sane(const struct zero_config *config)
{
    const struct fp16_config *fp16 = &config->fp16;
    expect(config->stage >= 0 && config->stage <= 2);
    expect(config->accumulation >= 1 && config->reduce_bucket_size >= 0);
    expect(isfinite(config->gradient_clipping) && config->gradient_clipping >= 0);
    expect(isfinite(fp16->loss_scale) && fp16->loss_scale >= 0);
    expect(isfinite(fp16->min_loss_scale) && fp16->min_loss_scale >= 0);
    expect(fp16->initial_scale_power >= 0 && fp16->initial_scale_power <= 100);
    expect(fp16->loss_scale_window >= 1 && fp16->hysteresis >= 1);
}

FUZZ_TARGET(config)
{
    SCOPE;
    struct zero_config config;
    int world_size = n > 0 ? 1 + bytes[0] % 64 : 1;
    json_t *json = n > 0 ? json_loadb((const char *)bytes + 1, n - 1, JSON_DECODE_ANY, NULL) : NULL;
    int status = zero_config_read(&config, json, world_size);
    if (status == 0)
        expect_sane(&config);
    else
        expect(error_is(&ValueError) || error_is(&NotImplementedError));
    expect((status == 0) == !error_occurred());
    error_clear();
    json_decref(json);
    return 0;
}
