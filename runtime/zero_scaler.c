#include "runtime/error.h"
#include "runtime/zero_internal.h"

void loss_scaler_init(struct loss_scaler *scaler, const struct fp16_config *config)
{
    double initial = config->loss_scale;
    if (initial == 0)
        initial = ldexp(1, config->initial_scale_power);
    *scaler = (struct loss_scaler){
        .dynamic = config->enabled && config->loss_scale == 0,
        .consecutive_hysteresis = config->consecutive_hysteresis,
        .scale = config->enabled ? initial : 1,
        .min_scale = config->min_loss_scale,
        .last_overflow = -1,
        .window = config->loss_scale_window,
        .hysteresis = config->hysteresis,
        .hysteresis_left = config->hysteresis,
    };
}

static int shrink(struct loss_scaler *scaler)
{
    scaler->last_overflow = scaler->step;
    if (scaler->hysteresis_left > 1) {
        scaler->hysteresis_left--;
        return 0;
    }
    if (scaler->scale == scaler->min_scale)
        return raise_error(RuntimeError,
                           "gradients overflow FP16 even at the smallest loss scale, %g: training "
                           "diverges, or min_loss_scale is too large",
                           scaler->scale);
    scaler->scale = fmax(scaler->scale / 2, scaler->min_scale);
    return 0;
}

static void grow(struct loss_scaler *scaler)
{
    bool due = (scaler->step - scaler->last_overflow) % scaler->window == 0;
    if (scaler->consecutive_hysteresis || due)
        scaler->hysteresis_left = scaler->hysteresis;
    if (due)
        scaler->scale *= 2;
}

int loss_scaler_update(struct loss_scaler *scaler, bool overflow)
{
    int status = 0;
    if (!scaler->dynamic)
        return 0;
    if (overflow)
        status = shrink(scaler);
    else
        grow(scaler);
    scaler->step++;
    return status;
}
