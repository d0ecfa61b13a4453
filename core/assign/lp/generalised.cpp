#include "generalised.hpp"

#include <algorithm>
#include <cmath>

#include "../simd.hpp"
#include "transport.hpp"

namespace muster {

namespace {

// Pivot elements below this share of the largest one on the path are not trusted.
constexpr double kPivotTolerance = 1e-11;
// Steps shorter than this are no progress.
constexpr double kStepTolerance = 1e-12;
// Pivots without progress, per node, before Bland's rule takes over.
constexpr Index kPatience = 2;
// Pivots and rows between two checks of the stop.
constexpr Index kPivotsBetweenStops = 16, kRowsBetweenStops = 1024;

// The basis and the programme that it belongs to.
struct Basis {
  const Tree& tree;
  const Top& top;
  const Array2<double>& profits;
  const Array1<double>& slack;
  const Array2<double>& use;
  Index n, m;

  // EnteringColumn of the pair {v, other} in the row of v.
  double weight(Index v, Index other) const { return v < n ? 1.0 : use(other, v - n); }
  double profit(Index v, Index other) const { return v < n ? profits(v, other - n) : profits(other, v - n); }
  // Number of the pair among all columns, for Bland's rule.
  Index pair_index(Index v, Index other) const { return v < n ? v * m + other - n : other * m + v - n; }
};

// Make v the top of its tree, reversing the arcs on the way up.
void reroot(const Tree& tree, Index v) {
  Index parent = -1;
  double flow = 0.0;
  while (v >= 0) {
    const Index old_parent = tree.parent[v];
    const double old_flow = tree.flow[v];
    if (old_parent >= 0) detach(tree, v);
    if (parent >= 0) {
      attach(tree, v, parent);
    } else {
      tree.parent[v] = -1;
    }
    tree.flow[v] = flow;
    parent = v;
    flow = old_flow;
    v = old_parent;
  }
}

Index top_of(const Tree& tree, Index v) {
  while (tree.parent[v] >= 0) v = tree.parent[v];
  return v;
}

// Dual of a component's top node, from its extra arc.
double price_top(const Basis& basis, Index v) {
  const Tree& tree = basis.tree;
  if (basis.top.kind[v] == kSlack) return v < basis.n ? basis.slack[v] : 0.0;
  // The far end's dual is constant + slope * dual[v]: collect both on the way up from it, then close the cycle.
  const Index far = basis.top.other[v];
  double constant = 0.0, slope = 1.0;
  for (Index k = far; k != v; k = tree.parent[k]) {
    const Index above = tree.parent[k];
    const double own = basis.weight(k, above);
    constant += slope * basis.profit(k, above) / own;
    slope *= -basis.weight(above, k) / own;
  }
  const double own = basis.weight(v, far), across = basis.weight(far, v);
  return (basis.profit(v, far) - across * constant) / (own + across * slope);
}

// Compute the duals of v, from its parent or its component's extra arc, and of everything below it.
void price_below(const Basis& basis, Index v) {
  const Tree& tree = basis.tree;
  const Index n = basis.n;
  double* const dual = tree.dual.data;
  const Index parent = tree.parent[v];
  if (parent >= 0) {
    dual[v] = (basis.profit(v, parent) - basis.weight(parent, v) * dual[parent]) / basis.weight(v, parent);
  } else {
    dual[v] = price_top(basis, v);
  }
  for_each_below(tree, v, [&](Index k) {
    const Index above = tree.parent[k];
    if (k < n) {
      dual[k] = basis.profits(k, above - n) - basis.use(k, above - n) * dual[above];
    } else {
      dual[k] = (basis.profits(above, k - n) - dual[above]) / basis.use(above, k - n);
    }
  });
}

// Add to `change` what absorbs `amount` in the row of v, along its path to the top and through the extra arc. Returns
// the number of touched nodes, `count` before.
Index push(const Basis& basis, Index v, double amount, Index count) {
  const Tree& tree = basis.tree;
  const Top& top = basis.top;
  Index summit = v;
  for (Index above = tree.parent[summit]; above >= 0; above = tree.parent[summit]) {
    const double rate = amount / basis.weight(summit, above);
    top.touched[count] = summit;
    ++count;
    top.change[summit] += rate;
    amount = -rate * basis.weight(above, summit);
    summit = above;
  }
  if (top.kind[summit] == kSlack) {
    top.top_change[summit] += amount;
    return count;
  }
  const Index far = top.other[summit];
  double slope = 1.0;
  for (Index k = far; k != summit; k = tree.parent[k]) {
    const Index above = tree.parent[k];
    slope *= -basis.weight(above, k) / basis.weight(k, above);
  }
  const double across = basis.weight(far, summit);
  const double rate = amount / (basis.weight(summit, far) + across * slope);
  top.top_change[summit] += rate;
  amount = -rate * across;
  for (Index k = far; k != summit; k = tree.parent[k]) {
    const Index above = tree.parent[k];
    const double step = amount / basis.weight(k, above);
    if (top.change[k] == 0.0) {
      top.touched[count] = k;
      ++count;
    }
    top.change[k] += step;
    amount = -step * basis.weight(above, k);
  }
  return count;
}

// The ratio test's result: the length of the step, and the leaving arc, of a node to its parent or the extra arc of a top.
struct LeavingArc {
  double step = kInfinity;
  Index node = -1;
  bool is_top = false;
};

// The leaving arc for the entering column; of several the one of the largest rate, or of the lowest number if `bland`. `tops`
// are the tops of the components that the column touches, -1 for none.
LeavingArc choose_leaving_arc(const Basis& basis, const Index (&tops)[2], Index count, bool bland) {
  const Tree& tree = basis.tree;
  const Top& top = basis.top;
  double largest = 0.0;
  for (Index k = 0; k < count; ++k) largest = std::max(largest, std::abs(top.change[top.touched[k]]));
  for (const Index t : tops) {
    if (t >= 0) largest = std::max(largest, std::abs(top.top_change[t]));
  }
  const double trusted = kPivotTolerance * largest;

  LeavingArc leaving;
  double exit_rate = 0.0;
  Index exit_index = 0;
  const auto compare = [&](Index node, bool is_top, double rate, double flow, Index other) {
    const double ratio = std::max(flow, 0.0) / rate;
    const Index index = other < 0 ? basis.n * basis.m + node : basis.pair_index(node, other);
    const bool tie = std::abs(ratio - leaving.step) <= kStepTolerance;
    const bool better = tie ? (bland ? index < exit_index : rate > exit_rate) : ratio < leaving.step;
    if (!better) return;
    leaving = {std::min(ratio, leaving.step), node, is_top};
    exit_rate = rate;
    exit_index = index;
  };
  for (Index k = 0; k < count; ++k) {
    const Index node = top.touched[k];
    const double rate = top.change[node];
    if (rate > trusted) compare(node, false, rate, tree.flow[node], tree.parent[node]);
  }
  for (int k = 0; k < 2; ++k) {
    const Index node = tops[k];
    if (node < 0 || (k == 1 && node == tops[0])) continue;
    const double rate = top.top_change[node];
    if (rate > trusted) compare(node, true, rate, top.flow[node], top.kind[node] == kSlack ? -1 : top.other[node]);
  }
  return leaving;
}

// Take the leaving arc out of the basis; returns the top of the tree that has lost its extra arc.
Index remove_leaving_arc(const Tree& tree, const Top& top, const LeavingArc& leaving) {
  if (leaving.is_top) return leaving.node;
  const Index summit = top_of(tree, leaving.node);
  detach(tree, leaving.node);
  tree.parent[leaving.node] = -1;
  if (top.kind[summit] != kCycle || top_of(tree, top.other[summit]) != leaving.node) return leaving.node;
  // The cycle ran through the leaving arc: its closing pair now connects the two parts.
  const Index far = top.other[summit];
  reroot(tree, far);
  attach(tree, far, summit);
  tree.flow[far] = top.flow[summit];
  return summit;
}

// Put the pair {v, other}, or the slack of v, into the basis with flow `step`; `loose` tops the tree without an extra
// arc. Returns the node from which duals are to be computed.
Index insert(const Tree& tree, const Top& top, Index v, Index other, Index loose, double step) {
  if (other < 0) {
    reroot(tree, v);
    top.kind[v] = kSlack;
    top.flow[v] = step;
    return v;
  }
  const bool v_loose = top_of(tree, v) == loose, other_loose = top_of(tree, other) == loose;
  if (v_loose && other_loose) {
    reroot(tree, v);
    top.kind[v] = kCycle;
    top.other[v] = other;
    top.flow[v] = step;
    return v;
  }
  const Index below = v_loose ? v : other, above = v_loose ? other : v;
  reroot(tree, below);
  attach(tree, below, above);
  tree.flow[below] = step;
  return below;
}

// The largest profit[j] - use[j] * price[j].
double largest_reduced(const double* profit, const double* use, const double* prices, Index count) {
  struct Reduced {
    const double *profit, *use, *prices;
    Lanes operator()(Index j, Lanes) const {
      return Lanes::load(profit + j) - Lanes::load(use + j) * Lanes::load(prices + j);
    }
    double operator()(Index j, double) const { return profit[j] - use[j] * prices[j]; }
  };
  return largest_of(count, Reduced{profit, use, prices});
}

// The entering column of an agent: its profit less the dual of its task, and the task's node, or -1 for the slack.
struct EnteringColumn {
  double value;
  Index head;
};

// The best column of agent i; where none exceeds `limit` the task means nothing. Bland's rule takes the first that does.
EnteringColumn choose_entering_column(const Basis& basis, Index i, const Array2<Index>& lists, double limit, bool bland) {
  const Index n = basis.n, m = basis.m;
  const double* const profit = basis.profits.data + i * basis.profits.columns;
  const double* const use = basis.use.data + i * basis.use.columns;
  const double* const prices = basis.tree.dual.data + n;
  EnteringColumn best{basis.slack[i], -1};
  const auto compare = [&](Index j) {
    const double value = profit[j] - use[j] * prices[j];
    if (value > best.value) best = {value, n + j};
  };
  if (lists.columns > 0) {
    const Index* const list = lists.data + i * lists.columns;
    for (Index k = 0; k < lists.columns; ++k) compare(list[k]);
  } else if (bland) {
    for (Index j = 0; j < m && (best.head < 0 || best.value <= limit); ++j) compare(j);
  } else {
    const double largest = largest_reduced(profit, use, prices, m);
    if (largest > best.value) {
      best.value = largest;
      Index j = 0;
      while (largest > limit && profit[j] - use[j] * prices[j] != largest) ++j;
      best.head = n + j;
    }
  }
  return best;
}

// Bring in the pair {v, other}, or the slack of v when other < 0; returns the length of the step.
double pivot(const Basis& basis, Index v, Index other, bool bland) {
  const Tree& tree = basis.tree;
  const Top& top = basis.top;
  Index count = 0;
  if (other < 0) {
    count = push(basis, v, 1.0, count);
  } else {
    count = push(basis, v, basis.weight(v, other), count);
    count = push(basis, other, basis.weight(other, v), count);
  }
  const Index tops[2] = {top_of(tree, v), other >= 0 ? top_of(tree, other) : -1};

  LeavingArc leaving = choose_leaving_arc(basis, tops, count, bland);
  // Only rounding errors leave no leaving arc: then nothing changes, and in the end the tolerance grows.
  if (leaving.node < 0) leaving.step = 0.0;
  for (Index k = 0; k < count; ++k) {
    const Index node = top.touched[k];
    if (top.change[node] != 0.0) {
      tree.flow[node] = std::max(0.0, tree.flow[node] - leaving.step * top.change[node]);
      top.change[node] = 0.0;
    }
  }
  for (const Index t : tops) {
    if (t >= 0 && top.top_change[t] != 0.0) {
      top.flow[t] = std::max(0.0, top.flow[t] - leaving.step * top.top_change[t]);
      top.top_change[t] = 0.0;
    }
  }
  if (leaving.node < 0) return 0.0;
  const Index loose = remove_leaving_arc(tree, top, leaving);
  price_below(basis, insert(tree, top, v, other, loose, leaving.step));
  return leaving.step;
}

}  // namespace

void start_generalised(const Tree& tree, const Top& top, const Array2<double>& profit, const Array1<double>& slack,
                       const Array2<double>& use, const Array1<double>& capacity, Index n, Index m) {
  for (Index j = 0; j < m; ++j) {
    const Index v = n + j;
    tree.parent[v] = -1;
    tree.first[v] = -1;
    top.kind[v] = kSlack;
    top.flow[v] = capacity[j];
  }
  for (Index i = 0; i < n; ++i) {
    tree.first[i] = -1;
    tree.parent[i] = -1;
    top.kind[i] = kSlack;
    Index best = -1;
    double best_value = slack[i];
    const Array1<double> own = profit.row(i);
    for (Index j = 0; j < m; ++j) {
      // A task with a parent is full: it hangs below the agent that filled it.
      if (own[j] > best_value && tree.parent[n + j] < 0) {
        best = j;
        best_value = own[j];
      }
    }
    if (best < 0) {
      top.flow[i] = 1.0;
    } else if (use(i, best) < top.flow[n + best]) {
      attach(tree, i, n + best);
      tree.flow[i] = 1.0;
      top.flow[n + best] -= use(i, best);
    } else {
      const double share = top.flow[n + best] / use(i, best);
      top.flow[i] = 1.0 - share;
      attach(tree, n + best, i);
      tree.flow[n + best] = share;
    }
  }
}

void price_generalised(const Tree& tree, const Top& top, const Array2<double>& profit, const Array1<double>& slack,
                       const Array2<double>& use, Index n, Index m) {
  const Basis basis{tree, top, profit, slack, use, n, m};
  for (Index v = 0; v < n + m; ++v) {
    if (tree.parent[v] < 0) price_below(basis, v);
  }
}

Status optimise_generalised(const Tree& tree, const Top& top, const Array2<double>& profit, const Array1<double>& slack,
                            const Array2<double>& use, const Array1<Index>& usable, const Array2<Index>& lists, Index n,
                            Index m, double tolerance, Stop& stop) {
  const Basis basis{tree, top, profit, slack, use, n, m};
  const double* const dual = tree.dual.data;
  price_generalised(tree, top, profit, slack, use, n, m);
  Index idle = 0, row = 0, stuck = 0, pivots = 0, priced = 0, patience = pivot_limit(n, m);
  bool bland = false;
  const auto enter = [&](Index v, Index other) {
    stuck = pivot(basis, v, other, bland) > kStepTolerance ? 0 : stuck + 1;
    ++pivots;
    idle = 0;
  };
  while (true) {
    bland = stuck > kPatience * (n + m);
    if (row % kRowsBetweenStops == 0 && stop.requested()) return kTimeLimit;
    if (row == 0) {
      if (pivots > patience) {
        // Only rounding errors can keep up positive reduced profits for so long.
        tolerance *= 10.0;
        patience += pivot_limit(n, m);
      }
      for (Index j = 0; j < m; ++j) {
        if (dual[n + j] < -tolerance) enter(n + j, -1);
      }
    }
    if (usable[row] != 0) {
      const double limit = dual[row] + tolerance;
      const EnteringColumn best = choose_entering_column(basis, row, lists, limit, bland);
      if (best.value > limit) {
        enter(row, best.head);
        if (pivots % kPivotsBetweenStops == 0 && stop.requested()) return kTimeLimit;
        // Bland's rule looks from the first column again.
        if (bland) row = n - 1;
      }
    }
    row = row + 1 < n ? row + 1 : 0;
    ++idle;
    if (idle > n) {
      // After few pivots the duals are exact enough.
      if (pivots - priced <= kTrustedPivots) return kOptimal;
      price_generalised(tree, top, profit, slack, use, n, m);
      priced = pivots;
      idle = row = 0;
    }
  }
}

}  // namespace muster
