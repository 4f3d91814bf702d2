package gittest

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/git"
	"swarmdeck/expect"
)

// Server is another machine that keeps repositories: git's own http-backend over TLS,
// and what git-lfs asks of such.
type Server struct {
	URL   string // of the directory
	Dir   string // where the repositories lie
	Trust string // a file with the certificate that it is known by
}

// Serve starts one. Known has the git of a home trust it.
func Serve(t testing.TB) *Server {
	t.Helper()
	program := expect.Of(exec.LookPath("git"))(t)
	s := &Server{Dir: t.TempDir()}
	s.Trust = filepath.Join(t.TempDir(), "trust.pem")
	backend := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + s.Dir, "GIT_HTTP_EXPORT_ALL=1"}}
	mux := http.NewServeMux()
	mux.Handle("/", backend)
	mux.HandleFunc("POST /{repo}/info/lfs/objects/batch", s.batch)
	mux.HandleFunc("PUT /{repo}/object/{oid}", s.put)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	expect.No(t, os.WriteFile(s.Trust, text, 0o600))
	return s
}

// Repository makes an empty one that can be pushed to, and returns its URL.
func (s *Server) Repository(t testing.TB, name string) (url string) {
	t.Helper()
	dir := filepath.Join(s.Dir, name)
	for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main", dir}, {"-C", dir, "config", "http.receivepack", "true"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	return s.URL + "/" + name
}

// Known has the configuration of a home trust the server.
func (s *Server) Known(t testing.TB, home string) {
	t.Helper()
	expect.No(t, os.MkdirAll(home, 0o755))
	out, err := exec.Command("git", "config", "-f", filepath.Join(home, ".gitconfig"), "http.sslCAInfo", s.Trust).CombinedOutput()
	expect.No(t, err, "git config", out)
}

// batch answers where objects are to be sent (git-lfs docs/api/batch.md).
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Objects []map[string]any `json:"objects"`
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	for _, o := range q.Objects {
		at := s.URL + "/" + r.PathValue("repo") + "/object/" + o["oid"].(string)
		o["actions"] = map[string]any{"upload": map[string]any{"href": at}}
	}
	w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": q.Objects})
}

// put keeps an object.
func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	oid := r.PathValue("oid")
	path := filepath.Join(s.Dir, r.PathValue("repo"), "lfs", "objects", oid[:2], oid[2:4], oid)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// SSH writes a program that stands for ssh in a test: it runs what git asks of a host on
// this machine. A URL's path is one of this machine then.
func SSH(t testing.TB, dir string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "ssh")
	text := strings.Join([]string{"#!/bin/sh", "for last; do :; done", `exec sh -c "$last"`, ""}, "\n")
	expect.No(t, os.WriteFile(program, []byte(text), 0o755))
	return program
}

// Git starts git as the engine does.
func Git(t testing.TB) git.Git {
	t.Helper()
	return git.Git{Cells: drivertest.Cells(t, cell.Options{})}
}
