// What the bindings share: numpy arrays in, views out, the interpreter's lock released while a kernel runs.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <vector>

#include "array.hpp"
#include "stop.hpp"

namespace muster {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using In1 = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using In3 = nb::ndarray<T, nb::numpy, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using In4 = nb::ndarray<T, nb::numpy, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

inline Index extent(std::size_t size) { return static_cast<Index>(size); }

template <class T>
Array1<T> view(const In1<T>& array) {
  return {array.data(), extent(array.shape(0))};
}
template <class T>
Array2<T> view(const In2<T>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1))};
}
template <class T>
Array3<T> view(const In3<T>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1)), extent(array.shape(2))};
}
template <class T>
Array4<T> view(const In4<T>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1)), extent(array.shape(2)), extent(array.shape(3))};
}

// The arrays of an environment, by name, for a class that works on them as long as it lives.
class NamedArrays {
 public:
  explicit NamedArrays(nb::dict arrays) : arrays_(std::move(arrays)) {}

  template <class T>
  Array1<T> get1(const char* name) {
    return keep<In1<T>>(name);
  }
  template <class T>
  Array2<T> get2(const char* name) {
    return keep<In2<T>>(name);
  }
  template <class T>
  Array3<T> get3(const char* name) {
    return keep<In3<T>>(name);
  }

 private:
  // Not converted: the environment would not see what is written to a copy.
  template <class In>
  auto keep(const char* name) {
    const In array = nb::cast<In>(nb::object(arrays_[name]), false);
    kept_.emplace_back(array);
    return view(array);
  }

  nb::dict arrays_;
  std::vector<nb::ndarray<>> kept_;
};

// Raise in Python what a signal handler raised while a kernel ran (Ctrl-C): call it with the lock, after the kernel.
inline void raise_pending() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

}  // namespace muster
