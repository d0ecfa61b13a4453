// Views of arrays that numpy or an Arena owns. Row-major, unchecked unless MUSTER_BOUNDS is defined.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace muster {

using Index = std::int64_t;

inline void check_index([[maybe_unused]] Index index, [[maybe_unused]] Index size) {
#ifdef MUSTER_BOUNDS
  if (index < 0 || index >= size) std::abort();
#endif
}

template <class T>
struct Array1 {
  T* data = nullptr;
  Index size = 0;

  T& operator[](Index i) const {
    check_index(i, size);
    return data[i];
  }
  Array1 first(Index count) const { return {data, count}; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
};

template <class T>
struct Array2 {
  T* data = nullptr;
  Index rows = 0;
  Index columns = 0;

  T& operator()(Index i, Index j) const {
    check_index(i, rows);
    check_index(j, columns);
    return data[i * columns + j];
  }
  Array1<T> row(Index i) const {
    check_index(i, rows);
    return {data + i * columns, columns};
  }
};

template <class T>
struct Array3 {
  T* data = nullptr;
  Index layers = 0;
  Index rows = 0;
  Index columns = 0;

  T& operator()(Index k, Index i, Index j) const {
    check_index(k, layers);
    check_index(i, rows);
    check_index(j, columns);
    return data[(k * rows + i) * columns + j];
  }
  Array2<T> layer(Index k) const {
    check_index(k, layers);
    return {data + k * rows * columns, rows, columns};
  }
  Array1<T> row(Index k, Index i) const { return layer(k).row(i); }
};

template <class T>
struct Array4 {
  T* data = nullptr;
  Index blocks = 0;
  Index layers = 0;
  Index rows = 0;
  Index columns = 0;

  T& operator()(Index b, Index k, Index i, Index j) const {
    check_index(b, blocks);
    return block(b)(k, i, j);
  }
  Array3<T> block(Index b) const { return {data + b * layers * rows * columns, layers, rows, columns}; }
};

}  // namespace muster
