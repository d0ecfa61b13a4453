// Products of matrices for the layers of small networks: every sum has one order, whatever the processor.
#pragma once

#include <cstdint>

#include "array.hpp"

namespace muster {

// The columns of a product come in multiples of kColumns; the caller pads with zeros.
constexpr Index kColumns = 16;

constexpr Index round_up(Index size, Index multiple) { return (size + multiple - 1) / multiple * multiple; }

// A matrix whose entry (i, j) is at data[i * row + j * column].
struct Strided {
  const float* data;
  Index row;
  Index column;
};

// c(i, j) = start(i, j) + a(i, 0) b(0, j) + a(i, 1) b(1, j) + ..., summed in this order; max(that, 0) if `rectified`.
// The columns of `start` (row stride 0: one row for all), b and c are contiguous; c may be `start`.
void multiply(const Strided& a, const float* b, Index b_row, const float* start, Index start_row, float* c, Index c_row,
              Index rows, Index inner, Index columns, bool rectified);

// The first layer of the pairs of one left object with the right objects `js`: out(t) = relu(left + right(js(t)) +
// x(js(t)) weight), where x [M, features] are the features of the left object's pairs. out is [count, width].
void first_layer(const float* left, const float* right, const float* x, Index features, const float* weight,
                 const Index* js, Index count, Index width, float* out);

// The last two layers: out(i) = bias3 + weight3·relu(bias2 + x(i) weight2). x is [rows, width]; the sum over the units is
// made of 8 partial sums, added up in pairs. `gates` [rows, words], if not null: which units are above 0, as bits.
void score_rows(const float* x, const float* weight2, const float* bias2, const float* weight3, float bias3, Index width,
                Index rows, float* out, std::uint32_t* gates, Index words);

// out(i, k) = value(i) where bit k of the row's gates is set, else 0.
void spread_gates(const std::uint32_t* gates, Index words, const float* value, Index width, Index rows, float* out);

// total += factor x
inline void add_scaled(float factor, const float* __restrict x, float* __restrict total, Index size) {
  for (Index k = 0; k < size; ++k) total[k] += factor * x[k];
}

// total += x
inline void add_to(const float* __restrict x, float* __restrict total, Index size) {
  for (Index k = 0; k < size; ++k) total[k] += x[k];
}

}  // namespace muster
