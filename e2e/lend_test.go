package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
)

// TestAPagerHasTheTerminalToItself reads a directory in $PAGER, in the cockpit that has the
// engine and in one that is attached: what is typed there is the pager's, an interrupt too.
func TestAPagerHasTheTerminalToItself(t *testing.T) {
	t.Parallel()
	for name, attached := range map[string]bool{"own": false, "attached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			pager := filepath.Join(u.home, "pager")
			expect.No(t, os.WriteFile(pager, []byte(`#!/bin/sh
cat >"$HOME/page"
trap : INT
echo PAGING
until [ "$line" ]; do read line </dev/tty; done
echo "$line" >"$HOME/typed"
`), 0o700))
			u.set("PAGER=" + pager)
			u.ok("agent", "create", "ada", "--project", "tools", "--dir", u.home, "--", "cat")
			if attached {
				u.daemon()
			}
			s := u.atTerminal().sit(80, 24)
			s.see(`ada`)
			s.press(enter)
			s.see(`directory`)
			s.press("go")
			s.see(`PAGING`)
			s.press(ctrlC + "q" + enter)
			s.see(`directory`)
			expect.Is(t, string(expect.Of(os.ReadFile(filepath.Join(u.home, "typed")))(t)), "q\n", "typed at the pager")
			expect.Has(t, string(expect.Of(os.ReadFile(filepath.Join(u.home, "page")))(t)), "pager", "the page")
			s.press(":version" + enter) // what is typed now is the cockpit's again
			s.see(`swarmdeck `)
			code := s.leaves()
			expect.Must(t, code == 0, "exit code %d\n%s", code, s.screen())
		})
	}
}
