// Pairwise Frank-Wolfe for max h·b + c'gc over the relaxed assignments, where c_j = sum_i b_ij, or sum_i mu_ij b_ij.
//
// The quadratic part sees b only through the loads c, so a vertex is kept as its score h·v, its loads and its few
// non-zero entries; no (nm)^2 matrix, and none of size nm but the point itself, is ever built.
#pragma once

#include <cstdint>

#include "../../arena.hpp"
#include "../../stop.hpp"
#include "../instance.hpp"
#include "../lp/relaxation.hpp"
#include "../problem.hpp"

namespace muster {

// Objective and Frank-Wolfe gap of a relaxed point, and the number of steps that led to it.
struct RelaxedValue {
  double value = 0.0;
  double gap = 0.0;
  Index steps = 0;
};

// Vertices whose loads are kept side by side.
constexpr Index kVertexBlock = 8;

// State of a Frank-Wolfe run: a point as a convex combination of K vertices.
struct FrankWolfe {
  Array2<double> point;          // [N, M] b
  Array1<double> loads;          // [M] c
  Array1<double> slope;          // [M] (g + g') c: what the quadratic part adds to each score in the gradient
  Array1<double> change;         // [M] loads of the direction
  Array1<Index> changed;         // [M] tasks whose load the direction changes
  Index vertices = 0;            // slots that have been used so far; those with weight 0 are empty
  Array1<double> weight;         // [K] of each vertex in the convex combination
  Array1<Index> age;             // [K] step at which the vertex was added
  Array1<double> score;          // [K] h·v
  Array3<double> vertex_loads;   // [K / kVertexBlock, M, kVertexBlock]: vertices of a block are worked on side by side
  Array1<double> vertex_value;   // [K] <gradient, vertex>
  Array2<std::int32_t> first;    // [K, N + 1] sparse entries of each vertex, as in Point
  Array2<std::int32_t> task;     // [K, N + M]
  Array2<double> value;          // [K, N + M]
  Point sparse_point;            // sparse copy of `point`
  RelaxedValue result;
};

FrankWolfe make_frank_wolfe(Arena& arena, Index n, Index m, Index steps);

// Take up to `steps` pairwise steps with exact line search, from the vertex that is best for scores + bonus per task.
// Leaves objective, gap and number of steps in `walk.result`.
Status run_frank_wolfe(FrankWolfe& walk, Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus,
                       Index steps, double scale, Stop& stop);

// Write the present point to `walk.sparse_point`.
void write_sparse(FrankWolfe& walk, const Instance& instance);

}  // namespace muster
