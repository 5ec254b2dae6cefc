/* The accounts of Meteor clients: logins, passwords, and the token that is kept. */
#include "contract_ddp.h"

static const char *load_token(void *user) {
  heard *h = user;
  return h->token[0] ? h->token : NULL;
}

/* Notes only whether a call has succeeded. */
static void heard_end(const rt_ddp_outcome *outcome, void *user) {
  note(user, outcome->error ? outcome->error->reason : "ok");
}

static void expect(heard *h, const char *text) {
  TURN_UNTIL(h->loop, h->text[0]);
  if (strcmp(h->text, text) != 0) printf("%s instead of %s\n", h->text, text);
  CHECK(strcmp(h->text, text) == 0);
  h->text[0] = '\0';
}

static void users_log_in_and_out(rt_loop *loop, const char *server) {
  heard h, second;
  char id[64], again[80], token[64], old[sizeof h.token];
  const char *begin;
  rt_ddp *ddp = new_ddp(&h, loop, server), *other;
  CHECK_OK(rt_ddp_on_load_token(ddp, load_token, &h, NULL));
  CHECK_STATUS(rt_ddp_get_user(ddp, heard_document, &h), RT_ERROR_NOT_FOUND);
  CHECK(strcmp(rt_last_error(), "nobody is logged in") == 0);
  connect_ddp(&h);
  CHECK_OK(rt_ddp_create_user(ddp, "ada", "ada@example.org", "secret-1", "{\"age\":36}", heard_end,
                              &h, NULL, NULL));
  CHECK(rt_ddp_is_logging_in(ddp) == 1);
  expect(&h, "ok;");
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  CHECK(strlen(id) == 17 && h.users == 1 && strstr(h.token, id));
  TURN_UNTIL(loop, rt_ddp_get_user(ddp, heard_document, &h) == RT_OK);
  CHECK(strstr(h.text, id) && strstr(h.text, "\"username\":\"ada\""));
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_change_password(ddp, "secret-1", "secret-2", heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  memcpy(old, h.token, sizeof old);
  CHECK_OK(rt_ddp_new_token(ddp, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  CHECK(h.token[0] && strcmp(h.token, old) != 0);
  CHECK_OK(rt_ddp_log_out_others(ddp, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  /* Another client begins with the token that was kept. */
  other = new_ddp(&second, loop, server);
  memcpy(second.token, h.token, sizeof h.token);
  CHECK_OK(rt_ddp_on_load_token(other, load_token, &second, NULL));
  CHECK_OK(rt_ddp_get_user_id(other, again, sizeof again, NULL));
  CHECK(strcmp(again, id) == 0);
  connect_ddp(&second);
  TURN_UNTIL(loop, rt_ddp_is_logging_in(other) == 0);
  begin = strstr(second.token, "\"token\":\"") + 9;
  snprintf(token, sizeof token, "%.*s", (int)(strchr(begin, '"') - begin), begin);
  CHECK_OK(rt_ddp_log_in_with_token(other, token, heard_end, &second, NULL, NULL));
  expect(&second, "ok;");
  CHECK_OK(rt_ddp_log_out(ddp, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  CHECK(id[0] == '\0' && h.token[0] == '\0');
  CHECK_OK(rt_ddp_log_in_with_password(ddp, "ada", "secret-2", NULL, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  snprintf(again, sizeof again, "{\"id\":\"%s\"}", id);
  CHECK_OK(rt_ddp_log_in_with_password(ddp, again, "secret-2", NULL, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  CHECK_STATUS(
      rt_ddp_log_in_with_password(ddp, "{ada", "secret-2", NULL, heard_end, &h, NULL, NULL),
      RT_ERROR_PROTOCOL);
  CHECK_OK(rt_ddp_log_in(ddp, "login", "[{\"resume\":\"wrong\"}]", heard_end, &h, NULL, NULL));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "ok;") != 0);
  rt_ddp_free(other);
  rt_ddp_free(ddp);
}

static void tokens_of_emails(rt_loop *loop, const char *server) {
  heard h;
  rt_ddp *ddp = new_ddp(&h, loop, server);
  connect_ddp(&h);
  CHECK_OK(rt_ddp_forgot_password(ddp, "ada@example.org", heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  CHECK_OK(rt_ddp_reset_password(ddp, "wrong", "new", heard_end, &h, NULL, NULL));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strstr(h.text, "oken"));
  h.text[0] = '\0';
  CHECK_OK(rt_ddp_verify_email(ddp, "wrong", heard_end, &h, NULL, NULL));
  TURN_UNTIL(loop, h.text[0]);
  CHECK(strcmp(h.text, "ok;") != 0);
  rt_ddp_free(ddp);
}

static void the_token_is_kept_in_a_file(rt_loop *loop, const char *server) {
  heard h;
  char path[] = "/tmp/rt-ddp-XXXXXX", file[64], lock[72], id[64], again[64];
  rt_ddp *ddp;
  CHECK(mkdtemp(path) != NULL);
  snprintf(file, sizeof file, "%s/tokens", path);
  snprintf(lock, sizeof lock, "%s.lock", file);
  ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_token_file(ddp, file));
  connect_ddp(&h);
  CHECK_OK(rt_ddp_create_user(ddp, "bob", NULL, "secret", NULL, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  CHECK_OK(rt_ddp_get_user_id(ddp, id, sizeof id, NULL));
  rt_ddp_free(ddp);
  ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_token_file(ddp, file));
  CHECK_OK(rt_ddp_get_user_id(ddp, again, sizeof again, NULL));
  CHECK(strcmp(again, id) == 0);
  connect_ddp(&h);
  CHECK_OK(rt_ddp_log_out(ddp, heard_end, &h, NULL, NULL));
  expect(&h, "ok;");
  rt_ddp_free(ddp);
  ddp = new_ddp(&h, loop, server);
  CHECK_OK(rt_ddp_set_token_file(ddp, file));
  CHECK_OK(rt_ddp_get_user_id(ddp, again, sizeof again, NULL));
  CHECK(again[0] == '\0');
  rt_ddp_free(ddp);
  CHECK(unlink(file) == 0 && unlink(lock) == 0 && rmdir(path) == 0);
}

int main(int argc, char **argv) {
  rt_loop *loop;
  CHECK(argc == 2);
  loop = new_loop();
  users_log_in_and_out(loop, argv[1]);
  tokens_of_emails(loop, argv[1]);
  the_token_is_kept_in_a_file(loop, argv[1]);
  rt_loop_free(loop);
  return 0;
}
