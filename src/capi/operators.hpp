// Operators: those that the callers of the C API made for one communicator, by number.
#pragma once

#include <polyrail/polyrail.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <polyrail/call.hpp>
#include <polyrail/status.hpp>

namespace polyrail::capi {

// The thread of the communicator's calls.
class Operators final {
 public:
  // Greater than all numbers of polyrailRedOp_t; a number is never given twice.
  static constexpr int kFirst = 1000;

  // `type`: the only one that it may be used with.
  polyrailRedOp_t add(const Reduction& reduction, std::optional<DataType> type);
  polyrailRedOp_t add(polyrailRedOpFunction_t function, void* context, bool is_commutative,
                      const void* identity);
  Status remove(polyrailRedOp_t op);
  // The reduction of an operator, built-in or made here, for elements of a type. What it refers to
  // stays as long as this.
  Result<Reduction> find(polyrailRedOp_t op, polyrailDataType_t type) const;

 private:
  struct UserRecord {
    polyrailRedOpFunction_t function;
    void* context;
    UserOp op;
  };
  struct Row {
    Reduction reduction;
    std::optional<DataType> type;
  };

  std::map<int, Row> rows_;
  // Kept beyond the end of their rows: operations under way may still use them.
  std::vector<std::unique_ptr<UserRecord>> users_;
  int next_ = kFirst;
};

// One element as a factor; an error if a double cannot hold it, or for a type that has no value.
Result<double> read_scalar(const void* scalar, DataType type);

}  // namespace polyrail::capi
