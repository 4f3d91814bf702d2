package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// opened begins a session of MCP over HTTP, and tells what was answered; 0 is nothing.
func opened(url, token string) (status int, said string) {
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(begin))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(got.Body, 64<<10))
	return got.StatusCode, string(body)
}

func TestATokenIsServedByTheEngineOnADatabaseThatHasItsTenant(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	users := []*user{newUser(t), newUser(t)}
	users[0].onDatabase(t, cluster.Database(t, "tokens"), nil)
	tenants := []string{"t_aa", "t_bb"}
	tokens := "tokens:\n"
	for _, tenant := range tenants {
		users[0].ok("tenant", "create", tenant)
		tokens += fmt.Sprintf("  - {operator: ann, role: viewer, tenant: %s, token: the-token-of-%s}\n", tenant, tenant)
	}
	users[1].onDatabase(t, cluster.Database(t, "tokens"), users[0])
	var urls []string
	var ends []func(unix.Signal)
	for _, u := range users {
		file := filepath.Join(u.home, "tokens.yaml")
		expect.No(t, os.WriteFile(file, []byte(tokens), 0o600))
		l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
		at := l.Addr().String()
		_ = l.Close()
		_, end := u.joined(t, "--mcp", at, "--tokens", file)
		urls, ends = append(urls, "http://"+at+"/mcp"), append(ends, end)
	}
	var said string
	expect.Await(t, "tenant at each engine", func() bool {
		said = ""
		served := map[string]string{}
		refused := 0
		for i, url := range urls {
			for _, tenant := range tenants {
				status, text := opened(url, "the-token-of-"+tenant)
				said += fmt.Sprintf("engine %d, %s: HTTP %d %s\n", i, tenant, status, text)
				switch {
				case status == http.StatusOK && strings.Contains(text, "serverInfo"):
					served[tenant] = url
				case status == http.StatusMisdirectedRequest && strings.Contains(text, tenant+" is with engine "):
					refused++
				}
			}
		}
		return len(served) == 2 && refused == 2 && served["t_aa"] != served["t_bb"]
	})
	t.Log(said)
	ends[1](unix.SIGKILL)
	for _, tenant := range tenants {
		expect.Await(t, tenant+" at the engine that is left", func() bool {
			status, _ := opened(urls[0], "the-token-of-"+tenant)
			return status == http.StatusOK
		})
	}
	status, _ := opened(urls[0], "the-token-of-nobody")
	expect.True(t, status == http.StatusUnauthorized, "a stranger: HTTP %d", status)
	ends[0](unix.SIGTERM)
}
