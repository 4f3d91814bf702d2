package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
)

// TestAnAgentThatIsNotLoggedInGetsItsLoginWhereThePersonSits, with an engine at work too.
func TestAnAgentThatIsNotLoggedInGetsItsLoginWhereThePersonSits(t *testing.T) {
	t.Parallel()
	u := newUser(t).set("TERM=xterm-256color")
	bin := filepath.Join(u.home, "bin")
	for name, text := range map[string]string{
		".config/swarmdeck/agents.yaml": "agents:\n  - {name: tester, about: A tester, program: tester, ways: [{runtime: exec, command: [tester, work], asks: nothing}], " +
			"login: {command: tester login, files: [~/.tester]}, install: none}\n",
		"bin/tester": "#!/bin/sh\n[ \"$1\" = login ] || exec cat\nread -p 'the code: ' code && [ $code = 42 ] && echo $code >~/.tester\n",
	} {
		path := filepath.Join(u.home, name)
		expect.No(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.No(t, os.WriteFile(path, []byte(text), 0o700))
	}
	u.set("PATH=" + bin + ":/usr/bin:/bin")
	u.daemon()
	s := u.sit(100, 24, "add", "tester")
	s.see(`not logged in. Open its login here, tester login\?`)
	s.press("y\r")
	s.see("the code:")
	s.press("42\r")
	s.see("tester is ready: A tester")
	s.see("yours, copied at each start: ~/.tester")
	expect.No(t, os.Remove(filepath.Join(u.home, ".tester")))
	s = u.sit(100, 24, "add", "tester", "--name", "other")
	s.see("Y/n")
	s.press("n\r")
	s.see("other is started")
}
