// SPDX-License-Identifier: Apache-2.0
// Reads a plan's JSON: every error says where and what, in the same words as the Python worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan.hpp"
#include "plan_bounds.hpp"

namespace lagometer::engine::reading {

using Json = nlohmann::json;

[[noreturn]] inline void refuse(const std::string& path, const std::string& what) {
  throw PlanError((path.empty() ? std::string("plan") : path) + ": " + what);
}

/// The kind of a value, in the words of the Python worker.
inline const char* kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a truth value";
    case Json::value_t::string:
      return "text";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

/// As the schema counts: code points, so UTF-8 continuation bytes don't count.
inline size_t characters_in(const std::string& text) {
  const auto begins_one = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; };
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_one));
}

inline std::string shortest(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

/// One JSON object, read key by key; finish() rejects keys that nobody asked for.
class Object {
 public:
  Object(const Json& value, std::string path) : value_(value), path_(std::move(path)) {
    if (!value.is_object()) refuse(path_, std::string("must be an object, not ") + kind_of(value));
  }

  [[nodiscard]] std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  bool has(const char* key) { return value_.contains(key); }

  const Json& at(const char* key) {
    known_.insert(key);
    const auto found = value_.find(key);
    if (found == value_.end()) refuse(path_of(key), "is missing");
    return *found;
  }
  std::string text(const char* key, Bounds<uint32_t> characters) {
    const Json& value = at(key);
    if (!value.is_string()) refuse(path_of(key), std::string("must be text, not ") + kind_of(value));
    std::string result = value.get<std::string>();
    const size_t count = characters_in(result);
    if (count > characters.high)
      refuse(path_of(key), "is longer than " + std::to_string(characters.high) + " characters");
    if (count < characters.low) refuse(path_of(key), "is empty");
    if (result.find('\0') != std::string::npos) refuse(path_of(key), "holds a zero byte");
    return result;
  }
  bool boolean(const char* key) {
    const Json& value = at(key);
    if (!value.is_boolean()) refuse(path_of(key), std::string("must be true or false, not ") + kind_of(value));
    return value.get<bool>();
  }
  template <typename Integer>
  Integer integer(const char* key, Bounds<Integer> bounds) {
    return integer_of(at(key), path_of(key), bounds);
  }
  template <typename Integer>
  static Integer integer_of(const Json& value, const std::string& path, Bounds<Integer> bounds) {
    if (!value.is_number_integer())
      refuse(path, std::string("must be a whole number of 64 bits, not ") + kind_of(value));
    const bool positive = value.is_number_unsigned();
    const bool fits =
        positive ? std::in_range<Integer>(value.get<uint64_t>()) : std::in_range<Integer>(value.get<int64_t>());
    if (fits) {
      const auto number =
          positive ? static_cast<Integer>(value.get<uint64_t>()) : static_cast<Integer>(value.get<int64_t>());
      if (number >= bounds.low && number <= bounds.high) {
        if (number % bounds.step != 0)
          refuse(path, "is " + value.dump() + ", no multiple of " + std::to_string(bounds.step));
        return number;
      }
    }
    refuse(path,
           "is " + value.dump() + ", outside " + std::to_string(bounds.low) + " … " + std::to_string(bounds.high));
  }
  double number(const char* key, Bounds<double> bounds) {
    const Json& value = at(key);
    if (!value.is_number()) refuse(path_of(key), std::string("must be a number, not ") + kind_of(value));
    const auto result = value.get<double>();
    if (result >= bounds.low && result <= bounds.high) return result;
    refuse(path_of(key), "is " + value.dump() + ", outside " + shortest(bounds.low) + " … " + shortest(bounds.high));
  }
  size_t word(const char* key, std::initializer_list<const char*> words) {
    const std::string value = text(key, {0, kTextCharactersMax});
    std::string all;
    size_t index = 0;
    for (const char* candidate : words) {
      if (value == candidate) return index;
      all += std::string(index++ == 0 ? "" : " | ") + candidate;
    }
    refuse(path_of(key), "is '" + value + "', must be " + all);
  }
  template <typename Function>
  void each(const char* key, Bounds<uint32_t> items, Function&& function) {
    const Json& list = at(key);
    if (!list.is_array()) refuse(path_of(key), std::string("must be a list, not ") + kind_of(list));
    if (list.size() > items.high) refuse(path_of(key), "has more than " + std::to_string(items.high) + " items");
    if (list.size() < items.low) refuse(path_of(key), "is empty");
    for (size_t index = 0; index < list.size(); ++index)
      function(list[index], path_of(key) + "[" + std::to_string(index) + "]");
  }
  template <typename Integer>
  std::vector<Integer> integers(const char* key, Bounds<uint32_t> items, Bounds<uint32_t> bounds) {
    std::vector<Integer> result;
    each(key, items, [&](const Json& item, const std::string& path) {
      result.push_back(static_cast<Integer>(integer_of(item, path, bounds)));
    });
    return result;
  }
  std::string object_text(const char* key) {
    const Json& value = at(key);
    if (!value.is_object()) refuse(path_of(key), std::string("must be an object, not ") + kind_of(value));
    return value.dump();
  }
  void finish() const {
    for (const auto& [key, unused] : value_.items()) {
      if (!known_.contains(key)) refuse(path_of(key), "is not a key of a plan");
    }
  }

 private:
  const Json& value_;
  std::string path_;
  std::set<std::string> known_;
};

}  // namespace lagometer::engine::reading
