package host

import (
	"fmt"
	"os"
	"strings"

	"swarmdeck/engine/host"
)

// argv is the command that has a shell on a host run a script.
func argv(h host.Host, script string) []string {
	if len(h.Command) == 0 {
		a, _ := host.ParseAddress(h.Address) // it was checked when it was kept
		args := []string{
			"ssh", "-T", "-a", "-x",
			// No question, nobody's port or agent, and no end of this link that would be
			// the end of somebody else's.
			"-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no",
			"-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
		}
		if a.Port != "" {
			args = append(args, "-p", a.Port)
		}
		if a.User != "" {
			args = append(args, "-l", a.User)
		}
		return append(args, "--", a.Host, "exec sh -c "+quoted(script))
	}
	whole := "sh -c " + quoted(script)
	var words []string
	put := false
	for _, w := range h.Command {
		if w == host.Here {
			w, put = whole, true
		}
		words = append(words, w)
	}
	if put {
		return words
	}
	return append(words, "sh", "-c", script)
}

// quoted is a text as one word of any shell: it has neither ' nor \ nor !.
func quoted(s string) string { return "'" + s + "'" }

// environment is what ssh needs of the engine's, an agent with keys, if there is one; and
// what says where docker, podman and kubectl have theirs.
func environment() map[string]string {
	env := map[string]string{}
	for _, name := range []string{
		"SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION",
	} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

// script puts the program on a host, checked by its digest, and has it link. It
// is run by whatever sh is there, behind whatever shell the user has: so it has
// neither quotes nor line breaks nor backslashes nor exclamation marks. What it
// says begins with the mark. The program comes on its standard input if it is
// not there; nothing follows before that is said to be well.
func script(mark, id, digest string, size int64) string {
	return strings.NewReplacer("MARK", mark, "DIGEST", digest, "SIZE", fmt.Sprint(size), "KEEPER", "keeper-"+id, "ID", id).Replace(strings.Join([]string{
		`umask 077`,
		`echo MARK on $(uname -sm)`,
		`d=${HOME:-/tmp}/.cache/swarmdeck`,
		`b=$d/DIGEST/swarmdeck`,
		`mkdir -p "$d/DIGEST" "$d/KEEPER" || { echo MARK error no place for it in $d; exit 1; }`,
		`sum() { sha256sum < "$1" 2>/dev/null | head -c 64; }`,
		`if [ -f "$b" ] && [ "$(sum "$b")" = DIGEST ]; then :; else ` +
			`echo MARK want; n=$b.$$; head -c SIZE > "$n"; ` +
			`if [ "$(sum "$n")" = DIGEST ]; then chmod 755 "$n" && mv -f "$n" "$b"; else rm -f "$n"; echo MARK error the program came in another shape, or there is no sha256sum; exit 1; fi; fi`,
		`echo MARK have`,
		`cd "$d/KEEPER" || exit 1`,
		`"$b" -keeper hold ID DIGEST < /dev/null > /dev/null 2> log & exec "$b" -keeper link ID`,
	}, "; "))
}
