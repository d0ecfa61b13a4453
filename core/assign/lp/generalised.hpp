// Exact linear programme for contributions of any kind: a generalised network simplex.
//
//     maximise sum w_ij b_ij   with   sum_j b_ij + r_i = 1,   sum_i mu_ij b_ij + t_j = u_j,   b, r, t >= 0.
//
// A pair's column has two entries, 1 in its agent's row and mu_ij in its task's. So a basis falls into components that
// are trees with one arc too many: either the slack of the top node, or a pair that closes a cycle between the top and
// some other node. Nodes are numbered agents 0..n-1, tasks n..n+m-1. `tree.flow[v]` is the variable on the arc between v
// and its parent; `top.kind`, `top.other` and `top.flow` describe a component's extra arc, stored at its top node.
//
// No big matrix is ever built: a pivot walks a few paths. Ties in the ratio test go to the largest pivot element; after a
// long run of steps without progress Bland's rule takes over until there is progress, so the method cannot cycle.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"
#include "tree.hpp"

namespace muster {

enum TopKind : Index { kSlack, kCycle };

// The extra arc of each component, kept at its top node; and the change of every basic variable in a pivot.
struct Top {
  Array1<Index> kind;        // kSlack or kCycle
  Array1<Index> other;       // the far end of the pair that closes the cycle
  Array1<double> flow;       // value of the extra arc's variable
  Array1<double> change;     // rate of change of each parent arc's variable, 0 outside a pivot
  Array1<double> top_change;
  Array1<Index> touched;     // nodes with a change that is not 0
};

inline Top make_top(Arena& arena, Index n, Index m) {
  const Index size = n + m + 1;
  return {arena.zeros1<Index>(size),  arena.zeros1<Index>(size),  arena.zeros1<double>(size),
          arena.zeros1<double>(size), arena.zeros1<double>(size), arena.zeros1<Index>(4 * size)};
}

// A greedy basis: each agent in turn takes its best task with capacity left, in part if need be.
void start_generalised(const Tree& tree, const Top& top, const Array2<double>& profit, const Array1<double>& slack,
                       const Array2<double>& use, const Array1<double>& capacity, Index n, Index m);

// Duals of the basis, afresh.
void price_generalised(const Tree& tree, const Top& top, const Array2<double>& profit, const Array1<double>& slack,
                       const Array2<double>& use, Index n, Index m);

// Pivot until no column has a reduced profit above `tolerance`; see `optimise_transport`.
//
// Agents with usable[i] == 0 have no pair that takes capacity and are left alone.
Status optimise_generalised(const Tree& tree, const Top& top, const Array2<double>& profit, const Array1<double>& slack,
                            const Array2<double>& use, const Array1<Index>& usable, const Array2<Index>& lists, Index n,
                            Index m, double tolerance, Stop& stop);

}  // namespace muster
