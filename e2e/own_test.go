package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// usurp has a process of the engine try what only a person may. Each line is a
// name and a command; RUN gives it the environment that it needs.
const usurp = `
approve        RUN approval approve OPEN --reason fine
as-boss        RUN approval approve OPEN --reason fine --as boss
bare           env -i RUN approval approve OPEN --reason fine --as boss
session        setsid --wait env -i RUN approval approve OPEN --reason fine --as boss
limits         prlimit --rttime=99:99 env -i RUN approval approve OPEN --reason fine --as boss
renamed        env -i USER=boss LOGNAME=boss SWARMDECK_TENANT=t_acme RUN approval approve OPEN --reason fine
forked         lost env -i RUN approval approve OPEN --reason fine --as boss
daemon         lost setsid env -i RUN approval approve OPEN --reason fine --as boss
hidden         lost prlimit --rttime=99:99 setsid env -i RUN approval approve OPEN --reason fine --as boss
first          RUN approval approve WORST --reason fine --as boss
second         RUN approval approve WORST --reason fine --as chief
deny           RUN approval deny OPEN --reason no
defer          RUN approval defer OPEN --for 1h
escalate       RUN approval escalate OPEN --to boss
operator       RUN operator set mallory --rights admin --key @KEY
terms          RUN policy terms --two-persons off
estop          RUN estop on --reason mine
budget         RUN budget set tenant --tasks 1000000
tenant         RUN tenant create t_mine
create         RUN agent create child --project P -- cat
delete         RUN agent delete ada --yes
dispatch       RUN task dispatch --kind exec.run --input {"argv":["true"]}
skill          RUN skill load .
notice         RUN notice add me --on failure -- true
send           RUN bus send ada {"say":"hello"}
audit          RUN audit export
abroad         RUN task list --tenant t_other
other          env -i SWARMDECK_TENANT=t_other RUN task list --as boss
cockpit        RUN
script         env -i RUN --accessible
serve          timeout 5 env RUN serve
server         RUN mcp
stdio          RUN mcp --agent ada
backup         RUN store backup stolen.db
complete       RUN __complete task show ''
`

// usurper writes the script that tries it and tells how each attempt ended, in a
// file that it moves into place at the end. All lies in a directory, the program
// too.
func (u *user) usurper(dir, open, worst string) (script string, names []string) {
	u.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `cd %s
exec 3>$1.running 4>$1.said
try() { name=$1; shift; "$@" </dev/null >&4 2>&4; echo "$name $?" >&3; }
lost() { rm -f lost.end; ( ( "$@" </dev/null; echo $? >lost.code; mv lost.code lost.end ) & ); while [ ! -e lost.end ]; do sleep 0.01; done; return $(cat lost.end); }
`, dir)
	run := filepath.Join(dir, "swarmdeck")
	for line := range strings.Lines(strings.TrimSpace(usurp)) {
		name, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
		var words []string
		for i, w := range strings.Fields(command) {
			switch w {
			case "RUN":
				if i == 0 {
					words = append(words, "env")
				}
				words = append(words, "HOME="+u.home, "PATH=$PATH", run)
				continue
			case "OPEN":
				w = open
			case "WORST":
				w = worst
			case "@KEY":
				w = "@" + filepath.Join(dir, "key.pub")
			case "lost", "setsid", "prlimit", "env", "''":
			default:
				w = "'" + w + "'"
			}
			words = append(words, w)
		}
		command = strings.ReplaceAll(strings.Join(words, " "), "setsid env", "setsid --wait env")
		fmt.Fprintf(&b, "try %s %s\n", name, strings.ReplaceAll(command, "--wait '--wait'", "--wait"))
	}
	b.WriteString("exec 3>&-\nmv $1.running $1\n")
	script = filepath.Join(dir, "usurp.sh")
	expect.No(u.t, os.WriteFile(script, []byte(b.String()), 0o700))
	return script, names
}

func TestNoProcessOfTheEnginesIsAPerson(t *testing.T) {
	u := newPlayer(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	_, line := pair(t, 9)
	signer, key := pair(t, 3)
	u.ok("operator", "set", "dora", "--role", "approver", "--key", key)
	for name, text := range map[string]string{
		"key.pub":  line,
		"asker.sh": "read x\necho '{\"type\":\"tool_request\",\"call_id\":\"c\",\"tool\":\"db.drop\",\"args\":{},\"risk\":\"critical\"}'\nread answer\necho '{\"type\":\"result\",\"status\":\"succeeded\"}'\n",
		"agent.sh": "read x\nsh usurp.sh by-agent\necho '{\"type\":\"result\",\"status\":\"succeeded\"}'\n",
	} {
		expect.No(t, os.WriteFile(filepath.Join(u.home, name), []byte(text), 0o600))
	}
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","x"]}`, "-o", "json"), "task_id")
	open := field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id")
	u.ok("agent", "create", "ada", "--project", "P", "--", "sh", "asker.sh")
	u.ok("agent", "assign", "ada", "drop it")
	worst := func() string {
		return field(u.ok("approval", "list", "--open", "--page-size", "1", "-o", "json"), "approval_id")
	}
	expect.Await(t, "critical approval", func() bool { return worst() != open })
	script, names := u.usurper(u.home, open, worst())
	critical := worst()

	try := func(by string, begin func() (actor string)) {
		t.Run(by, func(t *testing.T) {
			out := filepath.Join(u.home, by)
			actor := begin()
			expect.Await(t, "end of the attempts", func() bool { _, err := os.Stat(out); return err == nil })
			said, _ := os.ReadFile(out + ".said")
			tried := expect.Of(os.ReadFile(out))(t)
			var got []string
			for line := range strings.Lines(string(tried)) {
				name, code, _ := strings.Cut(strings.TrimSpace(line), " ")
				got = append(got, name)
				expect.Is(t, code, "1", name, "exit")
			}
			expect.Same(t, got, names, "tried")
			if n := strings.Count(string(said), "only a person may"); n != len(names)-2 { // and twice it is about the tenant or the name
				t.Errorf("%d of %d were told why:\n%s", n, len(names), said)
			}
			u.unusurped(t, open, critical)
			u.caught(t, actor)
		})
	}
	try("by-agent", func() string {
		u.ok("agent", "create", "eve", "--project", "P", "--profile", "open", "--yes", "--", "sh", "agent.sh")
		u.ok("agent", "assign", "eve", "try it")
		return "eve"
	})
	// Who may not approve has a task do it.
	operator, key := pair(t, 4)
	u.ok("operator", "set", "opal", "--role", "operator", "--key", key)
	opal := d.enter("opal", operator)
	try("by-task", func() string {
		code, out, stderr := opal.run(`task dispatch --kind exec.run --input '{"argv":["sh","` + script + `","by-task"],"profile":"open"}' -o json`)
		expect.Must(t, code == 0, "exit %d %s", code, stderr)
		id := field(out, "task_id")
		asked := ""
		expect.Await(t, "question about a command with this reach", func() bool {
			out := u.ok("approval", "list", "--open", "--match", id, "-o", "json")
			asked = field(out, "approval_id")
			return strings.Contains(out, id)
		})
		u.ok("approval", "approve", asked, "--reason", "to see what it can do")
		return id
	})

	// The person at the same terminal is one still, and one only.
	denied := func(why, stderr string, code int) {
		t.Helper()
		expect.True(t, code == 1 && field(stderr, "code") == "DENIED", "%s: exit %d %s", why, code, stderr)
	}
	approve := func(reason string, more ...string) (int, string) {
		code, _, stderr := u.run(append([]string{"approval", "approve", critical, "-o", "json", "--reason", reason}, more...)...)
		return code, stderr
	}
	code, stderr := approve("I looked", "--as", "boss")
	denied("a name without a person", stderr, code)
	code, stderr = approve("I looked")
	expect.True(t, code == 0, "exit %d %s", code, stderr)
	code, stderr = approve("me too")
	denied("one person twice", stderr, code)
	u.ok("operator", "set", "chief", "--role", "admin", "--uid", strconv.Itoa(os.Getuid()))
	code, stderr = approve("me too", "--as", "chief")
	denied("one user under another name", stderr, code)
	late, key := pair(t, 5)
	u.ok("operator", "set", "late", "--role", "approver", "--key", key)
	code, _, stderr = d.enter("late", late).run("approval approve " + critical + " --reason agreed -o json")
	denied("a person made for it", stderr, code)
	got := u.ok("approval", "show", critical, "-o", "json")
	expect.True(t, field(got, "status") == "open" && strings.Contains(got, `"by":"`+u.name()+`"`), "%s", got)
	code, out, stderr := d.enter("dora", signer).run("approval approve " + critical + " --reason agreed")
	expect.True(t, code == 0, "a second person: exit %d %s%s", code, out, stderr)
	u.ok("approval", "deny", open, "--reason", "not that")
	u.ok("task", "wait", task, "--status", "blocked")
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
}

// unusurped checks that nothing came of it.
func (u *user) unusurped(t *testing.T, open, critical string) {
	t.Helper()
	for _, id := range []string{open, critical} {
		got := u.ok("approval", "show", id, "-o", "json")
		expect.True(t, field(got, "status") == "open" && !strings.Contains(got, "approved_by"), "%s", got)
	}
	for _, c := range [][]string{{"operator", "list", "--match", "mallory"}, {"bus", "list"}, {"notice", "list"}, {"budget", "list"}} {
		expect.Is(t, u.ok(append(c, "-o", "json")...), "", c)
	}
	got := u.ok("estop", "show", "-o", "json")
	expect.True(t, !strings.Contains(got, `"on":true`), "%s", got)
	got = u.ok("tenant", "list", "-o", "json")
	expect.True(t, strings.Count(got, "\n") == 1, "%s", got)
	u.ok("agent", "show", "ada")
	expect.Fails(t, expect.Fault(os.Stat(filepath.Join(u.home, "stolen.db"))), "the data file was copied")
}

// caught checks that the log says who tried.
func (u *user) caught(t *testing.T, actor string) {
	t.Helper()
	log := u.ok("audit", "list", "--kind", "caller.refused", "--page-size", "100", "-o", "json")
	for _, command := range []string{"approval approve", "operator set", "policy terms", "estop on", "budget set", "agent create", "serve", "store backup"} {
		if !slices.ContainsFunc(strings.Split(log, "\n"), func(event string) bool {
			return field(event, "actor") == actor && field(event, "actor_kind") == "agent" && field(event, "door") == "cli" && field(event, "command") == command
		}) {
			t.Errorf("%s of %s is not in the log", command, actor)
		}
	}
	for _, secret := range []string{"ssh-ed25519", "two-persons", "fine", "boss"} {
		expect.True(t, !strings.Contains(log, secret), "the log holds %q, an argument", secret)
	}
}
