#include "relaxation.hpp"

#include <utility>

namespace muster {

namespace {

// Instances with more pairs than this look at short lists of tasks first ...
constexpr Index kShortListPairs = 100'000;
// ... of this length, chosen anew by reduced profit until none is missing.
constexpr Index kShortListLength = 24;
// A part of an agent smaller than this is rounding error.
constexpr double kPartTolerance = 1e-12;

// Whether an instance is large enough for short lists of length `length`.
bool needs_lists(Index n, Index m, Index length) { return length > 0 && n * m > kShortListPairs && m > 4 * length; }

// Largest reduced profit of agent i over all tasks.
double best_reduced(const Relaxation& relaxation, const Instance& instance, Index i) {
  const double* const profits = relaxation.profit.row(i).data;
  const double* const duals = relaxation.tree.dual.data + instance.n;
  if (instance.kind == Kind::transport) return largest_margin(profits, duals, instance.m);
  struct Reduced {
    const double* profits;
    const double* uses;
    const double* duals;
    Lanes operator()(Index j, Lanes) const {
      return Lanes::load(profits + j) - Lanes::load(uses + j) * Lanes::load(duals + j);
    }
    double operator()(Index j, double) const { return profits[j] - uses[j] * duals[j]; }
  };
  return largest_of(instance.m, Reduced{profits, instance.scaled_use.row(i).data, duals});
}

// Let entry k of a heap of tasks, the least reduced profit on top, sink to its place.
void sink(double* kept, Index* list, Index length, Index k) {
  while (true) {
    Index child = 2 * k + 1;
    if (child >= length) return;
    if (child + 1 < length && kept[child + 1] < kept[child]) ++child;
    if (kept[child] >= kept[k]) return;
    std::swap(kept[k], kept[child]);
    std::swap(list[k], list[child]);
    k = child;
  }
}

// Fill the short list of agent i with the tasks of largest reduced profit.
void make_list(const Relaxation& relaxation, const Instance& instance, Index i) {
  const Index n = instance.n, m = instance.m, length = relaxation.lists.columns;
  const bool transport = instance.kind == Kind::transport;
  double* const kept = relaxation.kept.data;
  Index* const list = relaxation.lists.row(i).data;
  const double* const profits = relaxation.profit.row(i).data;
  const double* const duals = relaxation.tree.dual.data + n;
  const double* const uses = instance.scaled_use.row(i).data;
  const auto reduced = [&](Index j) { return profits[j] - (transport ? duals[j] : uses[j] * duals[j]); };
  for (Index j = 0; j < length; ++j) {
    kept[j] = reduced(j);
    list[j] = j;
  }
  for (Index k = length / 2 - 1; k >= 0; --k) sink(kept, list, length, k);
  for (Index j = length; j < m; ++j) {
    const double value = reduced(j);
    if (value > kept[0]) {
      kept[0] = value;
      list[0] = j;
      sink(kept, list, length, 0);
    }
  }
}

// Whether any pair could enter the basis; if so, agents with such a pair get new short lists (all agents if `fresh`).
//
// A short list holds the tasks of largest reduced profit. The duals are current.
bool choose_lists(const Relaxation& relaxation, const Instance& instance, double tolerance, bool fresh, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  const double* const dual = relaxation.tree.dual.data;
  bool missing = false;
  for (Index v = n; v < n + m; ++v) missing |= dual[v] < -tolerance;
  const Array1<Index>& wants = relaxation.scratch;
  for (Index i = 0; i < n; ++i) {
    const double best = std::max(relaxation.slack[i], best_reduced(relaxation, instance, i));
    wants[i] = instance.usable[i] != 0 && best - dual[i] > tolerance * instance.inverse_supply[i];
    missing |= wants[i] != 0;
  }
  if (!missing) return false;
  for (Index i = 0; i < n; ++i) {
    // Lists that are not made keep their tasks, or point to task 0; both are valid.
    if ((i & 63) == 0 && stop.requested()) break;
    if (fresh || wants[i] != 0) make_list(relaxation, instance, i);
  }
  return true;
}

}  // namespace

Point make_point(Arena& arena, Index n, Index size) {
  return {arena.zeros1<Index>(n + 1), arena.zeros1<Index>(size), arena.zeros1<double>(size)};
}

Relaxation make_relaxation(Arena& arena, Index n, Index m) {
  const Index k = needs_lists(n, m, kShortListLength) ? kShortListLength : 0;
  const Index size = 2 * (n + m) + 2;
  return {make_tree(arena, n, m),   make_top(arena, n, m),     arena.make2<double>(n, m),
          arena.zeros1<double>(n),  arena.zeros1<Index>(n),    arena.zeros2<Index>(n, k),
          arena.zeros1<double>(k),  make_point(arena, n, size), arena.zeros1<Index>(2 * size)};
}

double set_profits(const Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus) {
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  const Index n = instance.n, m = instance.m;
  // The penalty for agents left out is no score, but its size limits the accuracy of the duals all the same.
  double most = -0.01 * instance.idle;
  for (Index i = 0; i < n; ++i) {
    const double inverse = instance.inverse_supply[i];
    double best = instance.idle;
    Index best_task = -1;
    if (instance.has_free_pairs) {
      for (Index j = 0; j < m; ++j) {
        const double value = instance.score(i, j) + bonus_of(instance, i, j, bonus, by_load);
        if (instance.use(i, j) == 0.0 && value > best) {
          best = value;
          best_task = j;
        }
      }
    }
    relaxation.free[i] = best_task;
    relaxation.slack[i] = best * inverse;
    most = std::max(most, best);
    const double* const scores = (instance.restricted ? instance.arc_score : instance.score).row(i).data;
    const double* const uses = instance.use.row(i).data;
    double* const profits = relaxation.profit.row(i).data;
    // First the values, whose largest is wanted, then per unit of supply.
    if (by_load) {
      for (Index j = 0; j < m; ++j) profits[j] = scores[j] + uses[j] * bonus[j];
    } else {
      for (Index j = 0; j < m; ++j) profits[j] = scores[j] + bonus[j];
    }
    most = larger(largest(profits, m), most);
    if (inverse == 1.0) continue;
    if (!instance.restricted) {
      for (Index j = 0; j < m; ++j) profits[j] *= inverse;
    } else {
      for (Index j = 0; j < m; ++j) profits[j] = profits[j] > -kInfinity ? profits[j] * inverse : profits[j];
    }
  }
  return most;
}

Status maximise(const Relaxation& relaxation, const Instance& instance, double scale, bool warm, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  const Tree& tree = relaxation.tree;
  const Top& top = relaxation.top;
  const Array2<double>& profit = relaxation.profit;
  const Array1<double>& slack = relaxation.slack;
  const double tolerance = kPriceTolerance * scale;
  const bool transport = instance.kind == Kind::transport;
  if (!warm && transport) {
    start_transport(tree, profit, slack, instance.supply, instance.flow_capacity, n, m);
  } else if (!warm) {
    start_generalised(tree, top, profit, slack, instance.scaled_use, instance.flow_capacity, n, m);
  }
  if (n * m == 0) return kOptimal;
  const bool listed = needs_lists(n, m, relaxation.lists.columns);
  const Array2<Index> lists = listed ? relaxation.lists : Array2<Index>{};
  bool fresh = !warm;
  while (true) {
    if (listed) {
      if (transport) {
        price_transport(tree, profit, slack, n, m);
      } else {
        price_generalised(tree, top, profit, slack, instance.scaled_use, n, m);
      }
      if (!choose_lists(relaxation, instance, tolerance, fresh, stop)) return kOptimal;
      fresh = false;
    }
    const Status status =
        transport ? optimise_transport(tree, profit, slack, instance.supply, instance.inverse_supply, lists, n, m,
                                       tolerance, stop)
                  : optimise_generalised(tree, top, profit, slack, instance.scaled_use, instance.usable, lists, n, m,
                                         tolerance, stop);
    if (!listed || status != kOptimal) return status;
  }
}

void read_vertex(const Relaxation& relaxation, const Instance& instance) {
  const Index n = instance.n, m = instance.m;
  const Point& point = relaxation.vertex;
  const Array1<Index>& scratch = relaxation.scratch;
  const Tree& tree = relaxation.tree;
  const Top& top = relaxation.top;
  std::fill_n(point.first.data, n + 1, 0);
  if (n == 0 || m == 0) return;
  const bool transport = instance.kind == Kind::transport;
  // First the arcs of the basis in node order, as (agent, node) with a slack's node standing for the agent itself ...
  Index count = 0;
  for (Index v = 0; v < n + m; ++v) {
    Index other = tree.parent[v];
    if (!transport && other < 0 && top.kind[v] == kCycle) other = top.other[v];
    if (v < n ? !(other >= n && other < n + m) && relaxation.free[v] < 0 : other < 0 || other >= n) continue;
    const Index agent = v < n ? v : other;
    scratch[2 * count] = agent;
    scratch[2 * count + 1] = v;
    ++point.first[agent + 1];
    ++count;
  }
  for (Index i = 0; i < n; ++i) point.first[i + 1] += point.first[i];
  // ... then each where its agent's entries begin, by increasing task, leaving out rounding errors.
  const Array1<Index> cursor{scratch.data + 2 * count, n};
  std::copy_n(point.first.data, n, cursor.data);
  for (Index k = 0; k < count; ++k) {
    const Index agent = scratch[2 * k], v = scratch[2 * k + 1];
    Index other = tree.parent[v];
    double flow = tree.flow[v];
    if (!transport && other < 0) {
      flow = top.flow[v];
      other = top.kind[v] == kCycle ? top.other[v] : -1;
    }
    const Index task = v >= n ? v - n : other >= n && other < n + m ? other - n : relaxation.free[v];
    const double value = instance.supply[agent] > 0.0 ? flow * instance.inverse_supply[agent] : 1.0;
    Index place = cursor[agent]++;
    for (; place > point.first[agent] && point.task[place - 1] > task; --place) {
      point.task[place] = point.task[place - 1];
      point.value[place] = point.value[place - 1];
    }
    point.task[place] = task;
    point.value[place] = std::min(value, 1.0);
  }
  Index filled = 0;
  for (Index i = 0; i < n; ++i) {
    const Index begin = point.first[i], end = point.first[i + 1];
    point.first[i] = filled;
    for (Index k = begin; k < end; ++k) {
      if (point.value[k] > kPartTolerance) {
        point.task[filled] = point.task[k];
        point.value[filled++] = point.value[k];
      }
    }
  }
  point.first[n] = filled;
}

}  // namespace muster
