#include "frank_wolfe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {

namespace {

// Stopping rules of the paper's code, here relative to the largest score so that scaling the scores changes nothing.
constexpr double kGapTolerance = 1e-5;
constexpr double kStepTolerance = 1e-4;
// Vertices whose values differ by less than this share of the largest score tie: the step goes away from the older one.
constexpr double kTieTolerance = 1e-10;
// A weight up to this counts as 0.
constexpr double kWeightTolerance = 1e-12;

// h·v, with the penalty for agents left out where all must be assigned; also writes the loads of v.
double score_vertex(const Instance& instance, const Point& vertex, const Array1<double>& loads) {
  std::fill_n(loads.data, instance.m, 0.0);
  double total = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    double placed = 0.0;
    for (Index k = vertex.first[i]; k < vertex.first[i + 1]; ++k) {
      const Index j = vertex.task[k];
      loads[j] += vertex.value[k] * weight(instance, i, j);
      placed += vertex.value[k];
      total += vertex.value[k] * instance.score(i, j);
    }
    total += instance.idle * (1.0 - placed);
  }
  return total;
}

double& load_of(const FrankWolfe& walk, Index k, Index j) {
  return walk.vertex_loads(k / kVertexBlock, j, k % kVertexBlock);
}

// Whether vertex k of the walk has the entries of `vertex`.
bool is_same(const FrankWolfe& walk, const Point& vertex, Index k, Index n) {
  for (Index i = 0; i <= n; ++i) {
    if (walk.first(k, i) != vertex.first[i]) return false;
  }
  for (Index e = 0; e < vertex.first[n]; ++e) {
    if (walk.task(k, e) != vertex.task[e] || walk.value(k, e) != vertex.value[e]) return false;
  }
  return true;
}

// One more slot, with weight 0. The slots of a block are cleared together.
void open_slot(FrankWolfe& walk, Index m) {
  if (walk.vertices % kVertexBlock == 0) {
    std::fill_n(walk.vertex_loads.layer(walk.vertices / kVertexBlock).data, m * kVertexBlock, 0.0);
    std::fill_n(&walk.score[walk.vertices], kVertexBlock, 0.0);
  }
  walk.weight[walk.vertices++] = 0.0;
}

// Find the vertex among those in use, or put it in an empty slot; returns the slot. Its weight is not changed.
Index store_vertex(FrankWolfe& walk, const Instance& instance, const Point& vertex, Index step) {
  const Index n = instance.n;
  const double score = score_vertex(instance, vertex, walk.change);
  Index empty = walk.vertices;
  for (Index k = walk.vertices - 1; k >= 0; --k) {
    if (walk.weight[k] == 0.0) {
      empty = k;
    } else if (walk.score[k] == score && is_same(walk, vertex, k, n)) {
      return k;
    }
  }
  if (empty == walk.vertices) open_slot(walk, instance.m);
  walk.age[empty] = step;
  walk.score[empty] = score;
  for (Index j = 0; j < instance.m; ++j) load_of(walk, empty, j) = walk.change[j];
  for (Index i = 0; i <= n; ++i) walk.first(empty, i) = static_cast<std::int32_t>(vertex.first[i]);
  for (Index e = 0; e < vertex.first[n]; ++e) {
    walk.task(empty, e) = static_cast<std::int32_t>(vertex.task[e]);
    walk.value(empty, e) = vertex.value[e];
  }
  return empty;
}

// point += amount * vertex k
void add_vertex(FrankWolfe& walk, Index k, Index n, double amount) {
  for (Index i = 0; i < n; ++i) {
    for (Index e = walk.first(k, i); e < walk.first(k, i + 1); ++e) {
      walk.point(i, walk.task(k, e)) += amount * walk.value(k, e);
    }
  }
}

// <gradient, vertex> for all vertices, a block at once: each sum is in the order of the tasks.
void value_vertices(FrankWolfe& walk, Index m) {
  const double* const slope = walk.slope.data;
  for (Index begin = 0; begin < walk.vertices; begin += kVertexBlock) {
    const double* const loads = walk.vertex_loads.layer(begin / kVertexBlock).data;
    double total[kVertexBlock];
    std::copy_n(&walk.score[begin], kVertexBlock, total);
    for (Index j = 0; j < m; ++j) {
      for (Index k = 0; k < kVertexBlock; ++k) total[k] += slope[j] * loads[j * kVertexBlock + k];
    }
    std::copy_n(total, kVertexBlock, &walk.vertex_value[begin]);
  }
}

// slope = (g + g') loads. Four tasks a pass; each sum is in the order of the tasks.
void set_slope(FrankWolfe& walk, const Instance& instance) {
  const Index m = instance.m;
  double* __restrict const slope = walk.slope.data;
  std::fill_n(slope, m, 0.0);
  Index tasks = 0;
  for (Index k = 0; k < m; ++k) {
    if (walk.loads[k] != 0.0) walk.changed[tasks++] = k;
  }
  Index a = 0;
  for (; a + 4 <= tasks; a += 4) {
    const Index* const k = &walk.changed[a];
    const double c0 = walk.loads[k[0]], c1 = walk.loads[k[1]], c2 = walk.loads[k[2]], c3 = walk.loads[k[3]];
    const double* const g0 = instance.pair_score.row(k[0]).data;
    const double* const g1 = instance.pair_score.row(k[1]).data;
    const double* const g2 = instance.pair_score.row(k[2]).data;
    const double* const g3 = instance.pair_score.row(k[3]).data;
    for (Index j = 0; j < m; ++j) slope[j] = (((slope[j] + c0 * g0[j]) + c1 * g1[j]) + c2 * g2[j]) + c3 * g3[j];
  }
  for (; a < tasks; ++a) {
    const double c = walk.loads[walk.changed[a]];
    const double* const g = instance.pair_score.row(walk.changed[a]).data;
    for (Index j = 0; j < m; ++j) slope[j] += c * g[j];
  }
}

// change' g change. Tasks whose load does not change add exactly 0 to any of the sums and are left out.
double find_curvature(FrankWolfe& walk, const Instance& instance) {
  Index tasks = 0;
  for (Index j = 0; j < instance.m; ++j) {
    if (walk.change[j] != 0.0) walk.changed[tasks++] = j;
  }
  const Index* const changed = walk.changed.data;
  const double* const change = walk.change.data;
  double total = 0.0;
  Index a = 0;
  // Four rows side by side: each is one long chain of additions.
  for (; a + 4 <= tasks; a += 4) {
    const double* const g0 = instance.task_score.row(changed[a]).data;
    const double* const g1 = instance.task_score.row(changed[a + 1]).data;
    const double* const g2 = instance.task_score.row(changed[a + 2]).data;
    const double* const g3 = instance.task_score.row(changed[a + 3]).data;
    double row0 = 0.0, row1 = 0.0, row2 = 0.0, row3 = 0.0;
    for (Index b = 0; b < tasks; ++b) {
      const Index k = changed[b];
      const double c = change[k];
      row0 += g0[k] * c;
      row1 += g1[k] * c;
      row2 += g2[k] * c;
      row3 += g3[k] * c;
    }
    total += change[changed[a]] * row0;
    total += change[changed[a + 1]] * row1;
    total += change[changed[a + 2]] * row2;
    total += change[changed[a + 3]] * row3;
  }
  for (; a < tasks; ++a) {
    const double* const g = instance.task_score.row(changed[a]).data;
    double row = 0.0;
    for (Index b = 0; b < tasks; ++b) row += g[changed[b]] * change[changed[b]];
    total += change[changed[a]] * row;
  }
  return total;
}

// The step t in [0, longest] that maximises gain·t + curvature·t², for gain >= 0.
double find_step(double gain, double curvature, double longest) {
  return curvature >= 0.0 ? longest : std::min(longest, -gain / (2.0 * curvature));
}

// Begin on this vertex.
void start_at(FrankWolfe& walk, const Instance& instance, const Point& vertex) {
  const Index n = instance.n, m = instance.m;
  walk.vertices = 0;
  const Index k = store_vertex(walk, instance, vertex, 0);
  walk.weight[k] = 1.0;
  for (Index j = 0; j < m; ++j) walk.loads[j] = load_of(walk, k, j);
  for (Index i = 0; i < n; ++i) std::fill_n(walk.point.row(i).data, m, 0.0);
  add_vertex(walk, k, n, 1.0);
  set_slope(walk, instance);
}

// Move weight from the worst vertex in use to the vertex `towards`, as far as the line search says; returns the step.
// `walk.vertex_value` is current.
double take_step(FrankWolfe& walk, const Instance& instance, Index towards, double scale) {
  const Index n = instance.n, m = instance.m;
  Index away = -1;
  double worst = std::numeric_limits<double>::infinity();
  for (Index k = 0; k < walk.vertices; ++k) {
    if (walk.weight[k] > 0.0) {
      const double candidate = walk.vertex_value[k];
      const bool tie = std::abs(candidate - worst) <= kTieTolerance * scale;
      if ((candidate < worst && !tie) || (tie && walk.age[k] < walk.age[away])) {
        away = k;
        worst = candidate;
      }
    }
  }
  for (Index j = 0; j < m; ++j) walk.change[j] = load_of(walk, towards, j) - load_of(walk, away, j);
  const double longest = walk.weight[away];
  const double step = find_step(walk.vertex_value[towards] - worst, find_curvature(walk, instance), longest);
  add_vertex(walk, towards, n, step);
  add_vertex(walk, away, n, -step);
  for (Index j = 0; j < m; ++j) walk.loads[j] += step * walk.change[j];
  walk.weight[towards] += step;
  walk.weight[away] = longest - step;
  if (walk.weight[away] <= kWeightTolerance) {
    walk.weight[towards] += walk.weight[away];
    walk.weight[away] = 0.0;
  }
  set_slope(walk, instance);
  return step;
}

struct Objective {
  double value;     // of the point
  double gradient;  // <gradient, point>
};

Objective evaluate_point(const FrankWolfe& walk, const Instance& instance) {
  double linear = 0.0, quadratic = 0.0;
  for (Index k = 0; k < walk.vertices; ++k) {
    if (walk.weight[k] > 0.0) linear += walk.weight[k] * walk.score[k];
  }
  for (Index j = 0; j < instance.m; ++j) quadratic += walk.slope[j] * walk.loads[j];
  return {linear + 0.5 * quadratic, linear + quadratic};
}

}  // namespace

FrankWolfe make_frank_wolfe(Arena& arena, Index n, Index m, Index steps) {
  // One vertex for the start, one for a last vertex that only measures the gap.
  const Index k = (steps + 2 + kVertexBlock - 1) / kVertexBlock * kVertexBlock;
  FrankWolfe walk;
  walk.point = arena.make2<double>(n, m);
  walk.loads = arena.make1<double>(m);
  walk.slope = arena.zeros1<double>(m);
  walk.change = arena.make1<double>(m);
  walk.changed = arena.make1<Index>(m);
  walk.weight = arena.make1<double>(k);
  walk.age = arena.make1<Index>(k);
  walk.score = arena.make1<double>(k);
  walk.vertex_loads = arena.make3<double>(k / kVertexBlock, m, kVertexBlock);
  walk.vertex_value = arena.make1<double>(k);
  walk.first = arena.make2<std::int32_t>(k, n + 1);
  walk.task = arena.make2<std::int32_t>(k, n + m);
  walk.value = arena.make2<double>(k, n + m);
  walk.sparse_point = make_point(arena, n, n * m + 1);
  return walk;
}

Status run_frank_wolfe(FrankWolfe& walk, Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus,
                       Index steps, double scale, Stop& stop) {
  maximise(relaxation, instance, set_profits(relaxation, instance, bonus), false, stop);
  read_vertex(relaxation, instance);
  start_at(walk, instance, relaxation.vertex);
  Status status = kIterationLimit;
  for (Index taken = 0;; ++taken) {
    const Status solved = maximise(relaxation, instance, set_profits(relaxation, instance, walk.slope), true, stop);
    read_vertex(relaxation, instance);
    const Objective here = evaluate_point(walk, instance);
    const Index towards = store_vertex(walk, instance, relaxation.vertex, taken + 1);
    value_vertices(walk, instance.m);
    const double gap = walk.vertex_value[towards] - here.gradient;
    walk.result = {here.value, gap, taken};
    if (solved != kOptimal) return kTimeLimit;
    if (gap <= kGapTolerance * scale) return kConverged;
    if (taken == steps || status == kStalled) return status;
    if (take_step(walk, instance, towards, scale) < kStepTolerance) status = kStalled;
  }
}

void write_sparse(FrankWolfe& walk, const Instance& instance) {
  const Point& out = walk.sparse_point;
  Index count = 0;
  for (Index i = 0; i < instance.n; ++i) {
    out.first[i] = count;
    const double* const row = walk.point.row(i).data;
    for (Index j = 0; j < instance.m; ++j) {
      if (row[j] > kWeightTolerance) {
        out.task[count] = j;
        out.value[count] = row[j];
        ++count;
      }
    }
  }
  out.first[instance.n] = count;
}

}  // namespace muster
