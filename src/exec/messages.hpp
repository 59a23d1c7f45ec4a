// Messages: sends, receives and one-sided accesses of one communicator, beside its collectives.
//
// A message travels as puts of the link to its peer. Short ones go at once (eager) and, if their
// receive is not there yet, into memory of this side; how much of that a peer may fill is counted
// in credits, which come back when messages are received. Long ones, and short ones without
// credit, are announced, and go when their receive is there. So a message never stands in the way
// of what comes behind it on its rail.
//
// Everything from one rank to another here has a number (the header's `operation`, with kFlag), so
// that what arrives twice is known. Messages match receives in the order of their numbers, which
// may arrive in any order: one takes part when all numbers below have been seen.
//
// Belongs to the engine's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <polyrail/status.hpp>

#include "src/exec/intervals.hpp"
#include "src/exec/link.hpp"
#include "src/exec/message_work.hpp"
#include "src/exec/windows.hpp"
#include "transports/transport.hpp"

namespace polyrail {

class Messages final {
 public:
  // Marks `operation` of a slice that is no collective's.
  static constexpr std::uint32_t kFlag = std::uint32_t{1} << 31;
  // Marks numbers of puts that are no steps of a plan.
  static constexpr std::uint32_t kPutFlag = std::uint32_t{1} << 31;
  // Memory for messages that nobody receives yet, all peers together.
  static constexpr std::uint64_t kUnexpectedBytes = 64 << 20;
  // Longer messages wait for their receive.
  static constexpr std::uint64_t kEagerBytes = 128 << 10;
  // What a message costs besides its bytes while nobody receives it.
  static constexpr std::uint64_t kOverheadBytes = 1024;

  // What the engine does for it.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void fail(Status why) = 0;
    // Nothing of this operation of the peer's lands where it was told any more.
    virtual void discard_incoming(int peer, std::uint32_t operation) = 0;
    // Whether anything can still come from the peer, and whether it still takes anything.
    virtual bool can_hear(int peer) const = 0;
    virtual bool can_reach(int peer) const = 0;
    // The last that happens to a work.
    virtual void complete(MessageWork& work, Status outcome) = 0;
  };

  // `links`: by peer, nullptr for this rank; filled in before anything starts.
  Messages(int rank, int rank_count, std::int64_t timeout_ms, std::vector<Link*>& links,
           Host& host);

  // Begins; the outcome may be known at once.
  void start(std::shared_ptr<MessageWork> work, double now_us);
  void add_window(std::shared_ptr<WindowMemory> window);
  void remove_window(std::uint32_t id);

  // Whether this rank waits for anything of the peers, or they may ask it for something.
  bool is_active() const { return !active_.empty() || !windows_.empty(); }
  bool has_works() const { return !active_.empty(); }
  bool waits_for(int peer) const;

  Landing on_slice(Endpoint& from, const SliceHeader& header);
  void on_landed(Endpoint& from, const SliceHeader& header);
  void on_put_progress(std::uint32_t put, std::uint64_t bytes);

  // When to ask about deadlines next, and the report of one that has passed; empty if none has.
  double next_deadline_us() const { return next_deadline_us_; }
  std::string expired(double now_us);
  // The communicator has failed, and no rail reads or writes memory of callers any more.
  void end_all(const Status& why);
  // From now on nothing is received any more: what comes is dropped.
  void close() { is_closing_ = true; }

 private:
  enum class Kind : std::uint8_t {
    kEager,         // a message with its bytes
    kRequest,       // a message without: they wait for kGrant
    kGrant,         // its receive is there; count: the message's number
    kData,          // the bytes of a granted message, under its number
    kCredit,        // count: bytes of credit that are free again
    kPut,           // of a window; signal: the slot, count: the version
    kAverage,       // of a window; signal: the slot, count: the type
    kAverageReply,  // the new content, or nothing if the window is gone; count: of what request
    kWindowEnd,     // this rank has ended its window
  };

  // A message on its way in, or here and not received yet.
  struct Incoming {
    Kind kind = Kind::kEager;
    MessagePurpose purpose = MessagePurpose::kMessage;
    DataType type = DataType::kInt8;
    int peer = -1;
    std::uint64_t number = 0;
    std::uint32_t tag = 0;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::byte* base = nullptr;   // where it lands
    Transfer* match = nullptr;   // who receives it
    Transfer* sender = nullptr;  // this rank itself, with the bytes at its source
    bool is_complete = false;
    std::uint32_t open_count = 0;  // slices that were told to land and have not yet
    IntervalSet landed;
    std::unique_ptr<std::byte[]> memory;  // of an unexpected one
    std::shared_ptr<WindowMemory> window;
    std::unique_ptr<WindowBuffer> buffer;
    std::uint64_t version = 0;
  };

  // A put of this rank that is under way.
  struct Outgoing {
    bool is_open = false;
    std::uint64_t left_bytes = 0;
    Transfer* transfer = nullptr;  // whose source it reads, if any
    std::shared_ptr<WindowMemory> window;
    const WindowBuffer* reply = nullptr;  // of the window: to be released
    static Outgoing of(Transfer& sent) {
      Outgoing outgoing;
      outgoing.transfer = &sent;
      return outgoing;
    }
  };

  // Numbers seen: all below `below`, and those in `above`.
  struct Seen {
    std::uint64_t below = 0;
    std::set<std::uint64_t> above;
    bool contains(std::uint64_t number) const { return number < below || above.contains(number); }
    void add(std::uint64_t number);
  };

  struct Peer {
    std::uint64_t next_number = 0;  // of what is sent
    Seen seen;
    std::unordered_map<std::uint64_t, std::unique_ptr<Incoming>> incoming;
    std::vector<Incoming*> unmatched;  // messages, by number
    std::vector<Transfer*> receives;   // without a message, in the order they were started
    std::vector<Transfer*> requested;  // sends that wait for a grant
    std::vector<Transfer*> averages;   // that wait for a reply
    std::uint64_t credit_bytes = 0;    // that may still be sent eagerly
    std::uint64_t released_bytes = 0;  // credit to give back
  };

  struct Fields {  // what a header says
    Kind kind;
    MessagePurpose purpose;
    DataType type;
    std::uint32_t window;
  };
  static std::uint32_t pack(Kind kind, MessagePurpose purpose, DataType type);
  static std::uint32_t pack(Kind kind, std::uint32_t window);
  static std::optional<Fields> unpack(std::uint32_t call_kind);

  void begin(Transfer& transfer);
  void send(Transfer& send);
  void send_to_self(Transfer& send);
  void access(Transfer& access);
  Status check(const Transfer& transfer) const;
  // Posts bytes to a peer. `number`: the message's, or a new one.
  std::uint64_t post(int peer, SliceHeader header, const std::byte* source, std::uint64_t bytes,
                     Outgoing outgoing, std::optional<std::uint64_t> number = std::nullopt);
  void post_signal(int peer, std::uint32_t call_kind, std::uint64_t count);

  Landing accept(Peer& peer, int rank, std::uint64_t number, const SliceHeader& header,
                 const Fields& fields);
  std::unique_ptr<Incoming> accept_message(const SliceHeader& header, const Fields& fields);
  std::unique_ptr<Incoming> accept_access(Peer& peer, int rank, std::uint64_t number,
                                          const SliceHeader& header, const Fields& fields);
  void add(Peer& peer, std::unique_ptr<Incoming> incoming);
  Incoming* find(Peer& peer, std::uint64_t number) const;
  WindowMemory* find_window(std::uint32_t id) const;
  Landing land(Incoming& incoming, const SliceHeader& header);
  void on_grant(Peer& peer, int rank, std::uint64_t number);
  void on_refusal(Peer& peer, int rank, std::uint64_t number);
  void on_complete(Incoming& incoming);
  void erase(Incoming& incoming);
  void give_credit_back(int rank, std::uint64_t bytes);

  // Joins receives and messages of a peer, in order.
  void match_all(Peer& peer);
  void match_receive(Peer& peer, Transfer& receive);
  bool match_message(Peer& peer, Incoming& incoming);
  void join(Incoming& incoming, Transfer& receive);
  bool calls_agree(const Incoming& incoming, const Transfer& receive);
  void deliver(Incoming& incoming);

  void update(Transfer& transfer);  // after is_sent or is_landed
  void end(MessageWork& work, Status outcome);
  void broken(int rank, const std::string& what);

  const int rank_;
  const std::int64_t timeout_ms_;
  const std::uint64_t credit_bytes_;  // of each peer
  std::vector<Link*>& links_;
  Host& host_;
  std::vector<Peer> peers_;
  std::vector<std::shared_ptr<MessageWork>> active_;  // shared with the Works of callers
  std::vector<std::shared_ptr<WindowMemory>> windows_;
  std::vector<Outgoing> outgoing_;
  std::vector<std::uint32_t> free_;  // of outgoing_
  double next_deadline_us_ = 1e300;
  bool is_closing_ = false;
};

}  // namespace polyrail
