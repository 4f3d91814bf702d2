package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestServeEndsWhenAnAddressIsTaken has one door open already when the next
// can't be.
func TestServeEndsWhenAnAddressIsTaken(t *testing.T) {
	t.Parallel()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	addr := l.Addr().String()
	u := newUser(t)
	tokens := filepath.Join(u.home, "tokens")
	expect.No(t, os.WriteFile(tokens, []byte("tokens: [{operator: alice, role: operator, token: the-token-of-alice}]\n"), 0o600))
	code, _, stderr := u.run("serve", "--mcp", "127.0.0.1:0", "--tokens", tokens, "--metrics", addr)
	expect.True(t, code >= 1 && strings.Contains(stderr, addr), "exit %d, %s", code, stderr)
}
