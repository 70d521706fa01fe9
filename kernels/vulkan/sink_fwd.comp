// SPDX-License-Identifier: Apache-2.0
const int SEQ_ROWS = 8, MOST_HEADS = 256; // a block has SEQ_ROWS rows of a sequence

// The part of all weights that keys have, by row and head.
shared float nj_share[SEQ_ROWS * MOST_HEADS];

void nj_sink_fwd()
{
    const int first = block_x() * SEQ_ROWS, rows = min(SEQ_ROWS, S - first), width = H * D;
    for (int i = thread(); i < rows * H; i += NJ_THREADS) {
        nj_f32 at = from(lse, (int64_t(block_y()) * H + i % H) * S + first + i / H);
        const float was = at.v[0], bias = get(sink, i % H);
        nj_share[i] = 1.0 / (1.0 + nj_exp(bias - was));
        at.v[0] = max(was, bias) + nj_log1p(nj_exp(-abs(was - bias)));
    }
    barrier();
    nj_t row = from_t(o, (int64_t(block_y()) * S + first) * width);
    for (int c = thread(); c < rows * width; c += NJ_THREADS)
        put(row, c, get(row, c) * nj_share[c / D]);
}
