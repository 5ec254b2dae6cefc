// Boost.Beast, synchronous, as in its documentation's client.
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <memory>
#include <string>
#include <vector>

#include "meter.h"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using tcp = asio::ip::tcp;
using Plain = websocket::stream<tcp::socket>;
using Secure = websocket::stream<beast::ssl_stream<tcp::socket>>;

static asio::io_context context;
static tcp::endpoint endpoint() {
  return {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(std::stoi(task.port))};
}

template <class Stream>
static void shake_hands(Stream &stream) {
  if (task_is("deflate") || task_is("greet")) {
    websocket::permessage_deflate deflate;
    deflate.client_enable = true;
    stream.set_option(deflate);
  }
  stream.read_message_max(1 << 26);
  stream.handshake(std::string(task.host) + ":" + task.port, task.path);
  stream.binary(true);
}

static void open(Plain &stream) {
  stream.next_layer().connect(endpoint());
  stream.next_layer().set_option(tcp::no_delay(true));
  shake_hands(stream);
}

template <class Stream>
static void close(Stream &stream) {
  beast::error_code error;
  stream.close(websocket::close_code::normal, error);
  // The server may end TLS and TCP in any way.
  if (error && error != asio::ssl::error::stream_truncated) meter_fail(error.message().c_str());
}

static void receive(Plain &stream) {
  beast::flat_buffer buffer;
  meter_start();
  stream.text(true);
  stream.write(asio::buffer("go", 2));
  for (;;) {
    stream.read(buffer);
    bool is_last = meter_message(buffer.data().data(), buffer.size());
    buffer.clear();
    if (is_last) break;
  }
  meter_stop();
}

static void send(Plain &stream, const std::uint8_t *payload) {
  beast::flat_buffer buffer;
  stream.auto_fragment(false);
  stream.write_buffer_bytes(1 << 16);
  meter_start();
  for (std::uint64_t i = 0; i < task.count; i++) stream.write(asio::buffer(payload, task.size));
  stream.read(buffer);
  meter_stop();
  meter_sent(static_cast<const char *>(buffer.data().data()), buffer.size());
}

static void echo(Plain &stream, const std::uint8_t *payload) {
  beast::flat_buffer buffer;
  bool is_last;
  meter_start();
  do {
    meter_ask();
    stream.write(asio::buffer(payload, task.size));
    stream.read(buffer);
    is_last = meter_answer(buffer.data().data(), buffer.size());
    buffer.clear();
  } while (!is_last);
  meter_stop();
}

static void connect_in_turn() {
  asio::ssl::context tls(asio::ssl::context::tls_client);
  tls.set_verify_mode(asio::ssl::verify_peer);
  if (task.ca_file) tls.load_verify_file(task.ca_file);
  meter_start();
  for (; meter.messages < task.count; meter.messages++) {
    if (!task.tls) {
      Plain stream(context);
      open(stream);
      close(stream);
      continue;
    }
    Secure stream(context, tls);
    beast::get_lowest_layer(stream).connect(endpoint());
    beast::get_lowest_layer(stream).set_option(tcp::no_delay(true));
    SSL_set_tlsext_host_name(stream.next_layer().native_handle(), task.host);
    stream.next_layer().set_verify_callback(asio::ssl::host_name_verification(task.host));
    stream.next_layer().handshake(asio::ssl::stream_base::client);
    shake_hands(stream);
    close(stream);
  }
  meter_stop();
}

static void idle(bool is_greeted) {
  std::vector<std::unique_ptr<Plain>> all(task.count + 1);
  beast::flat_buffer buffer;
  for (auto &stream : all) {
    if (&stream == &all[1]) meter_idle_before();
    stream = std::make_unique<Plain>(context);
    open(*stream);
    if (is_greeted) {
      stream->read(buffer);
      if (&stream != &all[0]) meter_message(buffer.data().data(), buffer.size());
      buffer.clear();
    } else if (&stream != &all[0]) {
      meter.messages++;
    }
  }
  meter_idle_after();
  meter_report();
}

int main(int argc, char **argv) try {
  task_read(argc, argv);
  if (task_is("connect")) {
    connect_in_turn();
    meter_report();
  }
  if (task_is("idle") || task_is("greet")) idle(task_is("greet"));
  Plain stream(context);
  if (task_is("receive") || task_is("deflate")) {
    open(stream);
    receive(stream);
  } else if (task_is("send")) {
    open(stream);
    send(stream, meter_payload());
  } else if (task_is("echo")) {
    open(stream);
    echo(stream, meter_payload());
  } else {
    return NOT_SUPPORTED;
  }
  meter_report();
} catch (const std::exception &error) {
  meter_fail(error.what());
}
