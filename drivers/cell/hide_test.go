package cell

import (
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"swarmdeck/expect"
)

func TestWhatIsHiddenCanNotBeShownByRenamingTheWayToIt(t *testing.T) {
	dir := yard(t)
	secret := filepath.Join(dir, "a", "b", "secret")
	expect.No(t, os.MkdirAll(filepath.Dir(secret), 0o777))
	expect.No(t, os.WriteFile(secret, []byte("TOPSECRET"), 0o644))
	if os.Geteuid() == 0 { // all of it is whose the directory is
		for _, path := range []string{"a", "a/b", "a/b/secret"} {
			expect.No(t, os.Chown(filepath.Join(dir, path), nobody, nobody))
		}
	}
	s := newSupervisor(t)
	for _, script := range []string{"mv a moved; mv a/b moved; mv a/b/secret moved; rm -rf a; mkdir c; echo x >a/new && echo went on", "cat moved/b/secret moved/secret moved a/b/secret"} {
		p := start(t, s, Spec{Argv: sh(script), Dir: dir, Wall: Wall{Profile: Worker, Hide: []string{secret}}})
		p.Stdin.Close()
		out, _ := io.ReadAll(p.Stdout)
		said := string(out)
		expect.True(t, said == "went on\n" || said == "", "%s: %q", script, said)
	}
	expect.Is(t, string(expect.Of(os.ReadFile(secret))(t)), "TOPSECRET")
	_, err := os.Stat(filepath.Join(dir, "a", "new"))
	expect.No(t, err, "beside it nothing can be written:")
}

func TestSecretsAreHiddenInEachHomeThatARunCouldSee(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("HOME", mine) // another than its user's
	for _, name := range []string{"snap/firefox", ".authinfo.gpg"} {
		expect.No(t, os.MkdirAll(filepath.Join(mine, name), 0o700))
	}
	s, dir := newSupervisor(t), yard(t)
	want := []string{filepath.Join(mine, ".ssh"), filepath.Join(mine, "snap/firefox"), filepath.Join(mine, ".authinfo.gpg")}
	if own, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && own.HomeDir != "/" {
		want = append(want, filepath.Join(own.HomeDir, ".ssh"))
	}
	if other, err := user.LookupId(strconv.Itoa(nobody)); err == nil && os.Geteuid() == 0 && filepath.IsAbs(other.HomeDir) && other.HomeDir != "/" {
		want = append(want, filepath.Join(other.HomeDir, ".ssh")) // whose the directory is
	}
	hidden := s.hidden(dir, nil)
	for _, path := range want {
		expect.True(t, slices.Contains(hidden, path), "%s is not hidden", path)
	}
}
