// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/flags.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <map>

namespace curtail {

struct Flags::Impl {
  // A flag with all variables that it sets.
  struct Shared {
    CLI::Option* option = nullptr;
    std::vector<std::function<bool(const CLI::results_t&)>> setters;
  };

  // Adds one more variable to the flag; the first makes the flag.
  template <class T>
  Shared& Bind(const std::string& name, T* value, const std::string& help) {
    Shared& shared = flags[name];
    shared.setters.push_back([value](const CLI::results_t& texts) {
      T parsed{};
      if (!CLI::detail::lexical_conversion<T, T>(texts, parsed)) return false;
      *value = std::move(parsed);
      return true;
    });
    if (shared.option == nullptr) {
      shared.option = app->add_option(
          name,
          [&shared](const CLI::results_t& texts) {
            for (const auto& set : shared.setters) {
              if (!set(texts)) return false;
            }
            return true;
          },
          help);
      shared.option->type_name(CLI::detail::type_name<T>());
    }
    last = shared.option;
    return shared;
  }

  template <class T>
  void BindNumber(const std::string& name, T* value, const std::string& help, FlagRange range) {
    const bool first = flags.count(name) == 0;
    Shared& shared = Bind(name, value, help);
    if (!first) return;
    shared.option->default_str(CLI::detail::to_string(*value));
    const FlagRange all;
    if (range.least != all.least || range.most != all.most) {
      shared.option->check(CLI::Range(range.least, range.most));
    }
  }

  CLI::App* app;
  std::map<std::string, Shared> flags;  // never moves an entry: the parser refers to them
  std::map<std::string, std::vector<bool*>> switches;
  CLI::Option* last = nullptr;
};

Flags::Flags(CLI::App* app) : impl_(std::make_unique<Impl>()) { impl_->app = app; }
Flags::~Flags() = default;

Flags& Flags::Add(const std::string& name, std::string* value, const std::string& help) {
  const bool first = impl_->flags.count(name) == 0;
  Impl::Shared& shared = impl_->Bind(name, value, help);
  if (first && !value->empty()) shared.option->default_str(*value);
  return *this;
}

Flags& Flags::Add(const std::string& name, int* value, const std::string& help, FlagRange range) {
  return impl_->BindNumber(name, value, help, range), *this;
}

Flags& Flags::Add(const std::string& name, uint32_t* value, const std::string& help, FlagRange range) {
  return impl_->BindNumber(name, value, help, range), *this;
}

Flags& Flags::Add(const std::string& name, uint64_t* value, const std::string& help, FlagRange range) {
  return impl_->BindNumber(name, value, help, range), *this;
}

Flags& Flags::Add(const std::string& name, float* value, const std::string& help, FlagRange range) {
  return impl_->BindNumber(name, value, help, range), *this;
}

Flags& Flags::Add(const std::string& name, double* value, const std::string& help, FlagRange range) {
  return impl_->BindNumber(name, value, help, range), *this;
}

Flags& Flags::Add(const std::string& name, bool* value, const std::string& help) {
  std::vector<bool*>& bound = impl_->switches[name];
  bound.push_back(value);
  if (bound.size() > 1) return *this;
  impl_->last = impl_->app->add_flag_callback(
      name,
      [&bound] {
        for (bool* one : bound) *one = true;
      },
      help);
  return *this;
}

Flags& Flags::Add(const std::string& name, std::vector<std::string>* values, const std::string& help) {
  CLI::Option* const option = impl_->Bind(name, values, help).option;
  option->expected(1, CLI::detail::expected_max_vector_size);
  if (name.starts_with('-')) option->allow_extra_args(false);
  return *this;
}

Flags& Flags::Required() {
  impl_->last->required();
  return *this;
}

}  // namespace curtail
