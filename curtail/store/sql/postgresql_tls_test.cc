// SPDX-License-Identifier: Apache-2.0
//
// SqlDatabase against a real PostgreSQL that asks for TLS and a password.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "curtail/base/loopback_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "curtail/store/sql/sql.h"
#include "curtail/store/store_testing.h"

namespace curtail {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A port of `host` that no server listens at.
std::string UnusedPort(const std::string& host) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

// The folder of PostgreSQL's programs.
std::string Programs() {
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql")) {
    if (fs::exists(version.path() / "bin/initdb")) return version.path() / "bin/";
  }
  ADD_FAILURE() << "no initdb";
  return "";
}

// A server that serves TLS at a port of OwnHost(), for the user "curtail" with the password "secret".
class TlsServer {
 public:
  TlsServer() {
    if (geteuid() == 0) {  // PostgreSQL does not run as root
      const passwd* const user = getpwnam("postgres");
      EXPECT_NE(user, nullptr);
      uid_ = user->pw_uid;
      gid_ = user->pw_gid;
      as_ = {"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"};
      Own(dir_.File(""));
    }
    Own(dir_.Write("password", "secret\n"));
    std::string command;
    for (const std::string& word : as_) command += word + " ";
    command += Join(Programs(), "initdb -N -A scram-sha-256 -U curtail --pwfile=", dir_.File("password"),
                    " -D ", dir_.File("data"), " >/dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    fs::copy_file(own_.file(), dir_.File("server.crt"));
    fs::copy_file(own_.key_file(), dir_.File("server.key"));
    chmod(dir_.File("server.key").c_str(), 0600);
    Own(dir_.File("server.crt"));
    Own(dir_.File("server.key"));
    std::vector<std::string> words = as_;
    for (const std::string& word :
         {Join(Programs(), "postgres"), std::string("-D"), dir_.File("data"), std::string("-p"), port_,
          std::string("-k"), dir_.File(""), std::string("-h"), host_})
      words.push_back(word);
    for (const std::string& setting :
         {std::string("ssl=on"), Join("ssl_cert_file=", dir_.File("server.crt")),
          Join("ssl_key_file=", dir_.File("server.key")), std::string("log_min_messages=fatal")}) {
      words.push_back("-c");
      words.push_back(setting);
    }
    process_ = std::make_unique<StoreProcess>(dir_.File(".s.PGSQL." + port_), words);
  }

  std::string address() const { return Join(host_, ":", port_); }
  std::string authority() const { return authority_.file(); }
  std::string password() const { return dir_.File("password"); }
  std::string Write(std::string_view name, std::string_view text) const { return dir_.Write(name, text); }

 private:
  void Own(const std::string& path) const {
    if (geteuid() == 0) {
      EXPECT_EQ(chown(path.c_str(), uid_, gid_), 0) << path;
    }
  }

  const TempDir dir_;
  const TestCertificate authority_{{.common_name = "authority", .names = ""}};
  const std::string host_ = OwnHost();
  const std::string port_ = UnusedPort(host_);
  const TestCertificate own_{{.names = "IP:" + host_}, &authority_};
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  std::vector<std::string> as_;
  std::unique_ptr<StoreProcess> process_;
};
TlsServer& TheServer() {
  static TlsServer server;
  return server;
}

class PostgresqlTls : public testing::Test {
 protected:
  PostgresqlTls() {
    setenv("PGUSER", "curtail", 1);
    setenv("PGSSLMODE", "verify-full", 1);
    setenv("PGSSLROOTCERT", TheServer().authority().c_str(), 1);
    setenv("PGPASSWORD_FILE", TheServer().password().c_str(), 1);
  }
  // "OK", or why the database cannot be opened.
  static std::string Open() {
    SqlOptions options;
    options.path = "shop";
    options.postgresql = TheServer().address();
    options.migrations = {"CREATE TABLE items(id INTEGER PRIMARY KEY) STRICT"};
    const auto db = SqlDatabase::Open(options);
    if (!db.ok()) return db.status().ToString();
    bool secure = false;
    const absl::Status read = (*db)->Read(Deadline::In(kMaxTestWait), [&](SqlSession& s) {
      return s.Query("SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()", {},
                     [&](const SqlRow& row) { secure = row.Integer(0) == 1; });
    });
    return read.ok() && !secure ? "in plain text" : read.ToString();
  }
};

TEST_F(PostgresqlTls, LogsInByAFileOverAVerifiedConnection) {
  EXPECT_EQ(Open(), "OK");
  unsetenv("PGPASSWORD_FILE");
  setenv("PGPASSWORD", "secret", 1);
  EXPECT_EQ(Open(), "OK") << "by the environment";
  unsetenv("PGPASSWORD");
}

TEST_F(PostgresqlTls, RefusesACertificateOfAnotherAuthority) {
  const TestCertificate stranger({.common_name = "stranger", .names = ""});
  setenv("PGSSLROOTCERT", stranger.file().c_str(), 1);
  EXPECT_THAT(Open(), AllOf(HasSubstr("PERMISSION_DENIED: postgresql " + TheServer().address()),
                            HasSubstr("certificate verify failed"),
                            HasSubstr("; PGSSLROOTCERT names the file of the authority")));
}

TEST_F(PostgresqlTls, SaysWhichPasswordIsWrong) {
  setenv("PGPASSWORD_FILE", TheServer().Write("wrong", "other\n").c_str(), 1);
  EXPECT_THAT(Open(), AllOf(HasSubstr("PERMISSION_DENIED: "), HasSubstr("password authentication failed"),
                            HasSubstr("; PGPASSWORD_FILE or PGPASSWORD has the password")));
  setenv("PGPASSWORD_FILE", "/nowhere/password", 1);
  EXPECT_THAT(Open(), HasSubstr("FAILED_PRECONDITION: PGPASSWORD_FILE: "));
}

}  // namespace
}  // namespace curtail
