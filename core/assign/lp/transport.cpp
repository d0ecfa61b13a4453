#include "transport.hpp"

#include <algorithm>

#include "../simd.hpp"

namespace muster {

namespace {

// Re-root the detached subtree of `top` at v and hang it below `parent` by an arc that carries `flow`.
void hang(const Tree& tree, Index v, Index top, Index parent, double flow) {
  while (true) {
    const Index old_parent = tree.parent[v];
    const double old_flow = tree.flow[v];
    if (v != top) detach(tree, v);
    attach(tree, v, parent);
    tree.flow[v] = flow;
    if (v == top) return;
    parent = v;
    flow = old_flow;
    v = old_parent;
  }
}

// Add delta to the duals of the agents below `top` (itself included) and subtract it from those of the tasks.
void shift_duals(const Tree& tree, Index top, Index n, double delta) {
  double* const dual = tree.dual.data;
  const auto change = [&](Index v) { dual[v] += v < n ? delta : -delta; };
  change(top);
  for_each_below(tree, top, change);
}

// Enter the arc tail -> head: push flow round the cycle that it closes; the arc that empties first leaves the tree.
void pivot(const Tree& tree, Index tail, Index head, double gain, Index n, Index stamp) {
  const Index* const parent = tree.parent.data;
  double* const flow = tree.flow.data;
  Index* const mark = tree.mark.data;
  for (Index v = tail; v >= 0; v = parent[v]) mark[v] = stamp;

  // Going up from the head, arcs above tasks lose flow. Ties go to the arc nearest the apex ...
  double head_limit = kInfinity, tail_limit = kInfinity;
  Index head_leaving = -1, tail_leaving = -1;
  Index apex = head;
  for (; mark[apex] != stamp; apex = parent[apex]) {
    if (apex >= n && flow[apex] <= head_limit) {
      head_limit = flow[apex];
      head_leaving = apex;
    }
  }
  // ... and going down to the tail, arcs above agents do. Ties go to the arc nearest the tail.
  for (Index v = tail; v != apex; v = parent[v]) {
    if (v < n && flow[v] < tail_limit) {
      tail_limit = flow[v];
      tail_leaving = v;
    }
  }

  const double step = std::min(head_limit, tail_limit);
  if (step > 0.0) {
    for (Index v = head; v != apex; v = parent[v]) flow[v] += v < n ? step : -step;
    for (Index v = tail; v != apex; v = parent[v]) flow[v] += v < n ? -step : step;
  }

  if (head_limit <= tail_limit) {
    detach(tree, head_leaving);
    hang(tree, head, head_leaving, tail, step);
    shift_duals(tree, head, n, -gain);
  } else {
    detach(tree, tail_leaving);
    hang(tree, tail, tail_leaving, head, step);
    shift_duals(tree, tail, n, gain);
  }
}

}  // namespace

void start_transport(const Tree& tree, const Array2<double>& profit, const Array1<double>& slack,
                     const Array1<double>& supply, const Array1<double>& capacity, Index n, Index m) {
  const Index root = n + m;
  std::fill_n(tree.first.data, root + 1, -1);
  tree.parent[root] = -1;
  // A saturated task hangs below the agent that filled it; its price is infinite, so that no other agent takes it.
  double* const closed = tree.dual.data + n;
  for (Index j = 0; j < m; ++j) {
    attach(tree, n + j, root);
    tree.flow[n + j] = capacity[j];
    closed[j] = 0.0;
  }
  for (Index i = 0; i < n; ++i) {
    const double* const row = profit.row(i).data;
    const double best = largest_margin(row, closed, m);
    if (!(best > slack[i])) {
      attach(tree, i, root);
      tree.flow[i] = supply[i];
      continue;
    }
    const Index j = index_of_margin(best, row, closed, m);
    const double left = tree.flow[n + j];
    if (supply[i] < left) {
      attach(tree, i, n + j);
      tree.flow[i] = supply[i];
      tree.flow[n + j] = left - supply[i];
    } else {
      attach(tree, i, root);
      tree.flow[i] = supply[i] - left;
      detach(tree, n + j);
      attach(tree, n + j, i);
      tree.flow[n + j] = left;
      closed[j] = kInfinity;
    }
  }
}

void price_transport(const Tree& tree, const Array2<double>& profit, const Array1<double>& slack, Index n, Index m) {
  double* const dual = tree.dual.data;
  const Index root = n + m;
  dual[root] = 0.0;
  for_each_below(tree, root, [&](Index v) {
    const Index above = tree.parent.data[v];
    if (above == root) {
      dual[v] = v < n ? slack[v] : 0.0;
    } else if (v < n) {
      dual[v] = profit(v, above - n) - dual[above];
    } else {
      dual[v] = profit(above, v - n) - dual[above];
    }
  });
}

Status optimise_transport(const Tree& tree, const Array2<double>& profit, const Array1<double>& slack,
                          const Array1<double>& supply, const Array1<double>& inverse_supply,
                          const Array2<Index>& lists, Index n, Index m, double tolerance, Stop& stop) {
  const Index root = n + m;
  double* const dual = tree.dual.data;
  const double* const prices = dual + n;
  const Index listed = lists.columns;
  std::fill_n(tree.mark.data, root + 1, -1);
  price_transport(tree, profit, slack, n, m);
  double finest = kInfinity;
  for (Index i = 0; i < n; ++i) {
    if (supply[i] > 0.0) finest = std::min(finest, inverse_supply[i]);
  }
  Index idle = 0, row = 0, pivots = 0, priced = 0, patience = pivot_limit(n, m);
  while (true) {
    // All rows of a large instance take longer than 5 ms.
    if ((row & 63) == 0 && stop.requested()) return kTimeLimit;
    if (row == 0) {
      if (pivots > patience) {
        // Only rounding errors can keep up positive reduced profits for so long.
        tolerance *= 10.0;
        patience += pivot_limit(n, m);
      }
      for (Index j = 0; j < m; ++j) {
        if (dual[n + j] < -tolerance * finest) {
          pivot(tree, root, n + j, -dual[n + j], n, pivots);
          ++pivots;
          idle = 0;
        }
      }
    }
    if (supply[row] > 0.0) {
      const double* const profits = profit.row(row).data;
      Index head = root;
      double best = slack[row];
      if (listed > 0) {
        const Index* const list = lists.row(row).data;
        for (Index k = 0; k < listed; ++k) {
          const Index j = list[k];
          const double value = profits[j] - prices[j];
          if (value > best) {
            head = n + j;
            best = value;
          }
        }
      } else {
        best = std::max(best, largest_margin(profits, prices, m));
      }
      const double gain = best - dual[row];
      if (gain > tolerance * inverse_supply[row]) {
        if (listed == 0 && best > slack[row]) head = n + index_of_margin(best, profits, prices, m);
        pivot(tree, row, head, gain, n, pivots);
        ++pivots;
        idle = 0;
      }
    }
    row = row + 1 < n ? row + 1 : 0;
    if (++idle > n) {
      // After few pivots the duals are exact enough.
      if (pivots - priced <= kTrustedPivots) return kOptimal;
      price_transport(tree, profit, slack, n, m);
      priced = pivots;
      idle = row = 0;
    }
  }
}

}  // namespace muster
