/* A network is a value: its setters check their arguments, objects copy it, and several connections
 * can use it. Headers that have a setter of their own are sent. */
#include "contract.h"

static const char *const pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

static const char *const pem =
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    "\n-----END PRIVATE KEY-----\n";

/* Text that cannot be the name of a file may be a key without its first and last line. Neither is
 * shown. */
static void keys(rt_network *network) {
  static const char *const words[] = {"PEM text", "255 bytes", "a line feed"};
  char texts[3][600] = {"MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"};
  int text;
  memset(texts[1], 'M', 256);
  memset(texts[2], 'M', 64);
  strcat(texts[2], "\nMIIE");
  for (text = 0; text < 3; text++) {
    CHECK_STATUS(rt_network_set_client_certificate(network, "cert.pem", texts[text], NULL),
                 RT_ERROR_INVALID_ARGUMENT);
    CHECK(strstr(rt_last_error(), words[text]) != NULL);
    CHECK(strstr(rt_last_error(), "MC4C") == NULL && strstr(rt_last_error(), "MM") == NULL);
    CHECK_STATUS(rt_network_set_ca_file(network, texts[text]), RT_ERROR_INVALID_ARGUMENT);
  }
  /* The longest name, in a folder. */
  memset(texts[1], 'M', 255);
  strcpy(texts[1] + 255, "/key.pem");
  CHECK_OK(rt_network_set_client_certificate(network, "cert.pem", texts[1], NULL));
}

static void arguments(rt_network *network) {
  const rt_status bad = RT_ERROR_INVALID_ARGUMENT;
  char path[109] = "";
  CHECK_STATUS(rt_network_new(NULL), bad);
  CHECK_STATUS(rt_network_set_ca_file(network, ""), bad);
  CHECK_OK(rt_network_set_ca_path(network, NULL));
  CHECK_STATUS(rt_network_set_ca_file(network, pem), bad);
  CHECK(strstr(rt_last_error(), "PEM text") != NULL && strstr(rt_last_error(), "MII") == NULL);
  CHECK_STATUS(rt_network_set_ca_path(network, pem), bad);
  CHECK_STATUS(rt_network_set_client_certificate(network, pem, NULL, NULL), bad);
  CHECK_STATUS(rt_network_set_client_certificate(network, "cert.pem", pem, NULL), bad);
  CHECK(strstr(rt_last_error(), "PEM text") != NULL && strstr(rt_last_error(), "MII") == NULL);
  CHECK_STATUS(rt_network_set_unix_socket(network, pem), bad);
  CHECK_STATUS(rt_network_set_client_certificate(network, NULL, "key.pem", NULL), bad);
  CHECK_STATUS(rt_network_set_client_certificate(network, "cert.pem", "", NULL), bad);
  CHECK_STATUS(rt_network_add_pinned_public_key(network, "sha256//short"), bad);
  CHECK_STATUS(rt_network_set_min_tls_version(network, 11), bad);
  CHECK_STATUS(rt_network_set_proxy(network, NULL), bad);
  CHECK_STATUS(rt_network_set_proxy(network, "proxy.test"), RT_ERROR_INVALID_URL);
  CHECK_STATUS(rt_network_set_proxy(network, "ftp://u:secret@p"), RT_ERROR_UNSUPPORTED_SCHEME);
  CHECK(strstr(rt_last_error(), "secret") == NULL);
  CHECK_STATUS(rt_network_set_proxy(network, "http://proxy.test:0"), RT_ERROR_INVALID_URL);
  CHECK(strstr(rt_last_error(), "port") != NULL);
  CHECK_STATUS(rt_network_set_proxy(network, "http://proxy.test/a?b"), RT_ERROR_INVALID_URL);
  CHECK(strstr(rt_last_error(), "path") != NULL);
  CHECK_STATUS(rt_network_set_no_proxy(network, "a\nb"), bad);
  CHECK_STATUS(rt_network_set_no_proxy(network, "a,10.0.0.0/99"), bad);
  CHECK(strstr(rt_last_error(), "10.0.0.0/99") != NULL);
  CHECK_STATUS(rt_network_set_unix_socket(network, ""), bad);
  memset(path, 'p', 108);
  CHECK_STATUS(rt_network_set_unix_socket(network, path), bad);
  CHECK(strstr(rt_last_error(), "unix_socket has 108 bytes, at most 107 are allowed") != NULL);
  CHECK_STATUS(rt_network_add_resolve(network, "host", 0, "127.0.0.1"), bad);
  CHECK_STATUS(rt_network_add_resolve(network, "host", 80, "not an address"), bad);
  CHECK_STATUS(rt_network_set_ip_version(network, 5), bad);
  CHECK_STATUS(rt_network_set_tcp_keep_alive_ms(network, -1), bad);
  CHECK_STATUS(rt_network_set_tcp_keep_alive_ms(network, 32767001), bad);
  CHECK(strstr(rt_last_error(), "32767001, 0 to 32767000 is expected") != NULL);
  CHECK_STATUS(rt_network_set_tcp_keep_alive_ms(network, INT64_MAX), bad);
  CHECK_STATUS(rt_network_set_receive_buffer_bytes(network, SIZE_MAX), bad);
  /* Every option can be set. */
  CHECK_OK(rt_network_set_ca_file(network, "ca.pem"));
  CHECK_OK(rt_network_set_ca_path(network, "/etc/ssl/certs"));
  CHECK_OK(rt_network_set_client_certificate(network, "cert.pem", NULL, "password"));
  CHECK_OK(rt_network_add_pinned_public_key(network, pin));
  CHECK_OK(rt_network_set_min_tls_version(network, RT_TLS_V1_3));
  CHECK_OK(rt_network_set_insecure_skip_verification(network, true));
  CHECK_OK(rt_network_set_proxy(network, "socks5h://user:password@127.0.0.1:1080"));
  CHECK_OK(rt_network_set_no_proxy(network, "*"));
  CHECK_OK(rt_network_set_no_proxy(network, "example.org:8080,[::1]:81"));
  CHECK_OK(rt_network_set_interface(network, "lo"));
  CHECK_OK(rt_network_set_interface(network, ""));
  CHECK_OK(rt_network_set_unix_socket(network, "/nowhere"));
  CHECK_OK(rt_network_set_ip_version(network, RT_IP_V4));
  CHECK_OK(rt_network_set_tcp_no_delay(network, false));
  CHECK_OK(rt_network_set_tcp_keep_alive_ms(network, 32767000));
  CHECK_OK(rt_network_set_receive_buffer_bytes(network, INT32_MAX));
}

static char received[4096];

static void on_headers(rt_message_kind kind, const uint8_t *data, size_t length, void *user) {
  (void)kind;
  CHECK(length < sizeof received);
  memcpy(received, data, length);
  received[length] = '\0';
  *(int *)user = 1;
}

/* A name that no resolver knows leads to the server, which receives the headers. */
static void headers(rt_loop *loop, const char *server) {
  const char *port = strrchr(server, ':') + 1;
  rt_network *network = NULL;
  rt_websocket *websocket = NULL;
  char url[64];
  int arrived = 0;
  CHECK_OK(rt_network_new(&network));
  CHECK_OK(rt_network_add_resolve(network, "name.invalid", atoi(port), "127.0.0.1"));
  CHECK_OK(rt_network_set_proxy(network, ""));
  CHECK_OK(rt_network_set_ip_version(network, RT_IP_V4));
  CHECK_OK(rt_network_set_tcp_keep_alive_ms(network, 30000));
  CHECK_OK(rt_network_set_receive_buffer_bytes(network, 1 << 16));
  snprintf(url, sizeof url, "ws://name.invalid:%s/headers", port);
  CHECK_OK(rt_websocket_new(loop, url, &websocket));
  CHECK_OK(rt_websocket_set_network(websocket, network));
  rt_network_free(network);
  CHECK_OK(rt_websocket_add_header(websocket, "X-Old", "1"));
  CHECK_OK(rt_websocket_set_header(websocket, "x-old", "2"));
  CHECK_OK(rt_websocket_set_origin(websocket, "https://example.org"));
  CHECK_OK(rt_websocket_set_cookie(websocket, "a=b; c=d"));
  CHECK_OK(rt_websocket_set_user_agent(websocket, "contract"));
  CHECK_STATUS(rt_websocket_set_basic_auth(websocket, "a:b", ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_OK(rt_websocket_set_basic_auth(websocket, "Aladdin", "open sesame"));
  CHECK_OK(rt_websocket_on_message(websocket, on_headers, &arrived, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  CHECK_STATUS(rt_websocket_set_network(websocket, NULL), RT_ERROR_STATE);
  TURN_UNTIL(loop, arrived);
  CHECK(strstr(received, "x-old: 2\n") != NULL && strstr(received, "X-Old") == NULL);
  CHECK(strstr(received, "Origin: https://example.org\n") != NULL);
  CHECK(strstr(received, "Cookie: a=b; c=d\n") != NULL);
  CHECK(strstr(received, "User-Agent: contract\n") != NULL);
  CHECK(strstr(received, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\n") != NULL);
  CHECK(strstr(received, "Host: name.invalid:") != NULL);
  rt_websocket_free(websocket);
}

static void bearer(rt_loop *loop, const char *server) {
  rt_websocket *websocket = new_websocket(loop, server, "/headers");
  int arrived = 0;
  CHECK_STATUS(rt_websocket_set_bearer_token(websocket, ""), RT_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rt_websocket_set_bearer_token(websocket, "a\r\nb"), RT_ERROR_INVALID_HEADER);
  CHECK_OK(rt_websocket_set_bearer_token(websocket, "token"));
  CHECK_OK(rt_websocket_on_message(websocket, on_headers, &arrived, NULL));
  CHECK_OK(rt_websocket_start(websocket));
  TURN_UNTIL(loop, arrived);
  CHECK(strstr(received, "Authorization: Bearer token\n") != NULL);
  rt_websocket_free(websocket);
}

int main(int argc, char **argv) {
  rt_network *network = NULL;
  rt_loop *loop;
  CHECK(argc == 2);
  CHECK_OK(rt_network_new(&network));
  arguments(network);
  keys(network);
  rt_network_free(network);
  rt_network_free(NULL);
  loop = new_loop();
  headers(loop, argv[1]);
  bearer(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
