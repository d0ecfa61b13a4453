// A rooted forest over agents, tasks and a root: the basis of a network simplex.
#pragma once

#include "../../arena.hpp"

namespace muster {

struct Tree {
  Array1<Index> parent;
  Array1<Index> first;     // first child, -1 for none
  Array1<Index> next;      // next and previous sibling, -1 for none
  Array1<Index> previous;
  Array1<double> flow;     // on the arc between a node and its parent
  Array1<double> dual;
  Array1<Index> mark;      // of the last pivot whose cycle the node was looked at for
};

inline Tree make_tree(Arena& arena, Index n, Index m) {
  const Index size = n + m + 1;
  return {arena.make1<Index>(size),   arena.make1<Index>(size),   arena.make1<Index>(size), arena.make1<Index>(size),
          arena.zeros1<double>(size), arena.zeros1<double>(size), arena.zeros1<Index>(size)};
}

// Visit the nodes below `top`, parents before their children.
template <class Visit>
void for_each_below(const Tree& tree, Index top, const Visit& visit) {
  const Index* const parent = tree.parent.data;
  const Index* const first = tree.first.data;
  const Index* const next = tree.next.data;
  Index v = top;
  while (true) {
    if (first[v] >= 0) {
      v = first[v];
    } else {
      while (v != top && next[v] < 0) v = parent[v];
      if (v == top) return;
      v = next[v];
    }
    visit(v);
  }
}

// Take v out of its parent's list of children.
inline void detach(const Tree& tree, Index v) {
  const Index before = tree.previous[v], after = tree.next[v];
  if (before >= 0) {
    tree.next[before] = after;
  } else {
    tree.first[tree.parent[v]] = after;
  }
  if (after >= 0) tree.previous[after] = before;
}

// Make v the first child of `parent`.
inline void attach(const Tree& tree, Index v, Index parent) {
  const Index head = tree.first[parent];
  tree.parent[v] = parent;
  tree.next[v] = head;
  tree.previous[v] = -1;
  if (head >= 0) tree.previous[head] = v;
  tree.first[parent] = v;
}

}  // namespace muster
