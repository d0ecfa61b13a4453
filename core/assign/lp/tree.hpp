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

// The node after v in a walk through the subtree of `top`, parents before their children; -1 after the last.
inline Index next_below(const Tree& tree, Index v, Index top) {
  const Index* const next = tree.next.data;
  if (tree.first.data[v] >= 0) return tree.first.data[v];
  while (v != top && next[v] < 0) v = tree.parent.data[v];
  return v == top ? -1 : next[v];
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
