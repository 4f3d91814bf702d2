package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestNoSkillReadsTheKeyOfTheAuditLog tries every name that leads to it.
func TestNoSkillReadsTheKeyOfTheAuditLog(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_test")
	key := u.data() + ".key"
	secret := expect.Of(os.ReadFile(key))(t)
	for _, err := range []error{
		os.Symlink(key, filepath.Join(u.home, "link")), os.Link(key, filepath.Join(u.home, "hard")),
		os.Symlink(filepath.Dir(key), filepath.Join(u.home, "door")),
	} {
		expect.No(t, err)
	}
	for _, path := range []string{key, "link", "hard", "door/swarmdeck.db.key", ".local/share/swarmdeck/swarmdeck.db", "x/../hard"} {
		code, out, errs := u.run("skill", "invoke", "file-read", "--params", `{"path":"`+path+`"}`, "--wait", "-o", "json")
		expect.True(t, code != 0 && !strings.Contains(out+errs, strings.TrimSpace(string(secret))) && strings.Contains(out, "path:"),
			"%s: exit %d\n%s%s", path, code, out, errs)
	}
	all := u.ok("audit", "list", "--kind", "file.refused", "-o", "json")
	expect.True(t, strings.Count(all, "one of the engine's own files") == 4, "audited:\n%s", all)
	u.ok("audit", "verify")
}
