// Binding a kernel: numpy arrays in, views (array.hpp) to the kernel, the interpreter's lock released while it runs.
//
// An array that the kernel writes to is taken as it is or refused; one that it only reads may be converted to its type.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include "array.hpp"
#include "stop.hpp"

namespace muster {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, std::size_t dimensions>
using Numpy = nb::ndarray<T, nb::numpy, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// The Python argument that a view is made of; numbers and all else are passed on as they are.
template <class T>
struct ArgumentOf {
  using type = T;
  static constexpr bool written = false;
};
template <class T>
struct ArgumentOf<Array1<T>> {
  using type = Numpy<T, 1>;
  static constexpr bool written = !std::is_const_v<T>;
};
template <class T>
struct ArgumentOf<Array2<T>> {
  using type = Numpy<T, 2>;
  static constexpr bool written = !std::is_const_v<T>;
};
template <class T>
struct ArgumentOf<Array3<T>> {
  using type = Numpy<T, 3>;
  static constexpr bool written = !std::is_const_v<T>;
};
template <class T>
struct ArgumentOf<Array4<T>> {
  using type = Numpy<T, 4>;
  static constexpr bool written = !std::is_const_v<T>;
};
template <class T>
struct ArgumentOf<std::optional<T>> {
  using type = std::optional<typename ArgumentOf<T>::type>;
  static constexpr bool written = ArgumentOf<T>::written;
};
template <class T>
using Argument = typename ArgumentOf<std::remove_cvref_t<T>>::type;

inline Index extent(std::size_t size) { return static_cast<Index>(size); }

template <class T>
const T& view(const T& value) {
  return value;
}
template <class T>
Array1<T> view(const Numpy<T, 1>& array) {
  return {array.data(), extent(array.shape(0))};
}
template <class T>
Array2<T> view(const Numpy<T, 2>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1))};
}
template <class T>
Array3<T> view(const Numpy<T, 3>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1)), extent(array.shape(2))};
}
template <class T>
Array4<T> view(const Numpy<T, 4>& array) {
  return {array.data(), extent(array.shape(0)), extent(array.shape(1)), extent(array.shape(2)), extent(array.shape(3))};
}
template <class T>
auto view(const std::optional<T>& array) {
  return array ? std::optional(view(*array)) : std::nullopt;
}

template <class T>
std::array<Index, 1> shape(const Array1<T>& array) {
  return {array.size};
}
template <class T>
std::array<Index, 2> shape(const Array2<T>& array) {
  return {array.rows, array.columns};
}
template <class T>
std::array<Index, 3> shape(const Array3<T>& array) {
  return {array.layers, array.rows, array.columns};
}
template <class T>
std::array<Index, 4> shape(const Array4<T>& array) {
  return {array.blocks, array.layers, array.rows, array.columns};
}

// Raise ValueError in Python, also from a thread that does not hold the interpreter's lock.
inline void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

// Raise ValueError unless the shape of an array begins with these extents.
template <class Array, class Extents = std::initializer_list<Index>>
void require_shape(const Array& array, const Extents& extents, const char* message) {
  const auto found = shape(array);
  require(std::equal(extents.begin(), extents.end(), found.begin()), message);
}

// The name of a parameter of type T, as nanobind has it.
template <class T>
nb::arg parameter(const char* name) {
  nb::arg made(name);
  if (ArgumentOf<std::remove_cvref_t<T>>::written) made.noconvert();
  return made;
}

// Bind a function of views and numbers; `names` are those of its parameters.
template <class Result, class... Parameters, class... Names>
void bind_function(nb::module_& module, const char* name, Result (*function)(Parameters...), Names... names) {
  module.def(
      name,
      [function](const Argument<Parameters>&... arguments) {
        const nb::gil_scoped_release unlocked;
        return function(view(arguments)...);
      },
      parameter<Parameters>(names)...);
}

// Bind a method likewise; it changes arrays that the object has views of, not the object.
template <class Self, class Result, class... Parameters, class... Names>
void bind_method(nb::class_<Self>& bound, const char* name, Result (Self::*method)(Parameters...) const, Names... names) {
  bound.def(
      name,
      [method](const Self& self, const Argument<Parameters>&... arguments) {
        const nb::gil_scoped_release unlocked;
        return (self.*method)(view(arguments)...);
      },
      parameter<Parameters>(names)...);
}

template <class Self, class Result, class... Parameters, class... Names>
void bind_method(nb::class_<Self>& bound, const char* name, Result (*method)(const Self&, Parameters...), Names... names) {
  bound.def(
      name,
      [method](const Self& self, const Argument<Parameters>&... arguments) {
        const nb::gil_scoped_release unlocked;
        return method(self, view(arguments)...);
      },
      parameter<Parameters>(names)...);
}

// The arrays of an environment, by name, for a class that works on them as long as it lives.
class NamedArrays {
 public:
  explicit NamedArrays(nb::dict arrays) : arrays_(std::move(arrays)) {}

  // Becomes the view that it is assigned to; TypeError where the array has another type or number of dimensions.
  struct Entry {
    NamedArrays& arrays;
    const char* name;

    template <class View>
    operator View() const {
      // Not converted: the environment would not see what is written to a copy.
      const auto array = nb::cast<Argument<View>>(nb::object(arrays.arrays_[name]), false);
      arrays.kept_.emplace_back(array);
      return view(array);
    }
  };
  Entry operator[](const char* name) { return {*this, name}; }

 private:
  nb::dict arrays_;
  std::vector<nb::ndarray<>> kept_;
};

// Raise in Python what a signal handler raised while a kernel ran (Ctrl-C): call it with the lock, after the kernel.
inline void raise_pending() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

// Run work(stop) without the interpreter's lock until it ends, the flag [1] is raised or the seconds are over.
template <class Work>
void run_stoppable(Array1<Index> flag, double seconds, const Work& work) {
  {
    const nb::gil_scoped_release unlocked;
    Stop stop(flag.size > 0 ? flag.data : nullptr, seconds);
    work(stop);
  }
  raise_pending();
}

}  // namespace muster
