// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	requestKept    = 24 * 3600 // seconds
	requestsForgot = 16        // at once
)

// A Store is the file of a service, as curtail/store/sql opens it, and its schema the text that C++ has, too: either program
// may serve from it. Safe for all goroutines.
type Store struct{ reads, writes *sql.DB }

// Open opens FOLDER/SERVICE.db, and makes its schema from sql/SERVICE.sql if it is new.
func (h *Host) Open() (*Store, error) {
	folder, err := h.DataFolder()
	if err != nil {
		return nil, err
	}
	if len(h.Store(h.Service+"-postgresql")) > 0 {
		return nil, fmt.Errorf("%s keeps its data in a file here: leave --stores out", h.Service)
	}
	sync := "FULL"
	if _, off := h.flags["no-sync"]; off {
		sync = "NORMAL"
	}
	place := fmt.Sprintf("file:%s?_journal_mode=WAL&_synchronous=%s&_busy_timeout=5000&_foreign_keys=1",
		filepath.Join(folder, h.Service+".db"), sync)
	s := &Store{}
	if s.writes, err = sql.Open("sqlite3", place+"&_txlock=immediate"); err != nil {
		return nil, err
	}
	s.writes.SetMaxOpenConns(1)
	if err := s.makeSchema(h.Service); err != nil {
		return nil, err
	}
	s.reads, err = sql.Open("sqlite3", place+"&_query_only=1")
	return s, err
}

func (s *Store) makeSchema(service string) error {
	schema, err := os.ReadFile(filepath.Join(os.Getenv("CURTAIL_APP_HOME"), "sql", service+".sql"))
	if err != nil {
		return err
	}
	return s.Write(context.Background(), func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version == 1 {
			return err
		}
		if version > 1 {
			return fmt.Errorf("the data has version %d of its schema, and this program knows 1", version)
		}
		_, err := tx.Exec(string(schema) + "; PRAGMA user_version = 1")
		return err
	})
}

func within(ctx context.Context, db *sql.DB, work func(tx *sql.Tx) error) error {
	if ctx.Err() != nil { // what has begun is not left half done
		return status.FromContextError(ctx.Err()).Err()
	}
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err = work(tx); err == nil {
		err = tx.Commit()
	}
	var broken sqlite3.Error
	if errors.As(err, &broken) && (broken.ExtendedCode == sqlite3.ErrConstraintUnique ||
		broken.ExtendedCode == sqlite3.ErrConstraintPrimaryKey) {
		return status.Error(codes.AlreadyExists, broken.Error())
	}
	return err
}

// Read runs work on one state of the data.
func (s *Store) Read(ctx context.Context, work func(tx *sql.Tx) error) error { return within(ctx, s.reads, work) }

// Write runs work as a transaction, which is on disk when it returns. Other writers wait.
func (s *Store) Write(ctx context.Context, work func(tx *sql.Tx) error) error { return within(ctx, s.writes, work) }

// Once is a Write that happens once for each name of a request, as apps/kit/once.h has it. A repetition gets the first answer as
// *reply. ALREADY_EXISTS: the name was given to another content.
func (s *Store) Once(ctx context.Context, caller uint64, reply proto.Message, work func(tx *sql.Tx) error) error {
	received, _ := metadata.FromIncomingContext(ctx)
	name, content := strings.Join(received["idempotency-key"], ","), strings.Join(received["idempotency-content"], ",")
	if name == "" || content == "" {
		return s.Write(ctx, work)
	}
	return s.Write(ctx, func(tx *sql.Tx) error {
		now := time.Now().Unix()
		var kept string
		var answer []byte
		err := tx.QueryRow("SELECT content, reply FROM requests WHERE caller = ?1 AND name = ?2 AND kept_s > ?3",
			int64(caller), name, now-requestKept).Scan(&kept, &answer)
		if err == nil && kept != content {
			return status.Error(codes.AlreadyExists,
				"the idempotency key was given to another request of this caller; take a new one for each request")
		}
		if err == nil {
			return proto.Unmarshal(answer, reply)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := work(tx); err != nil {
			return err
		}
		if answer, err = proto.Marshal(reply); err != nil {
			return err
		}
		if answer == nil {
			answer = []byte{} // an empty message, not NULL
		}
		if _, err = tx.Exec("INSERT OR REPLACE INTO requests(caller, name, content, reply, done, kept_s)"+
			" VALUES (?1, ?2, ?3, ?4, 1, ?5)", int64(caller), name, content, answer, now); err != nil {
			return err
		}
		_, err = tx.Exec("DELETE FROM requests WHERE (caller, name) IN"+
			" (SELECT caller, name FROM requests WHERE kept_s <= ?1 ORDER BY kept_s LIMIT ?2)", now-requestKept, requestsForgot)
		return err
	})
}
