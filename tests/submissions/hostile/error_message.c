/* Raises an error whose message is no UTF-8, and holds control sequences, HTML and formats.
 * fails: config zero_runtime
 */
json_t *build_config(int world_size, int micro_batch, int accumulation, const char *precision)
{
    return raise_null(ValueError, "%s",
                      "%s%n\33[2J\xff\xfe\"}],\"earned\":100</td><script>alert(1)</script>\n"
                      "passed\r\n\n");
}
