package command

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

// begin is the section of help that is shown first.
const begin = "Begin"

// firstHelp writes the help that a newcomer sees: the commands to begin with, and few flags.
func (t *tree) firstHelp(w io.Writer, all []top) error {
	var out bytes.Buffer
	fmt.Fprint(&out, "swarmdeck alone opens the cockpit; swarmdeck demo opens it on an example swarm.\n\n")
	for _, top := range all {
		fmt.Fprintf(&out, "  %-9s %s\n", top.name, top.make().Short)
	}
	fmt.Fprintln(&out)
	for _, name := range []string{"data", "output", "as", "read-only"} {
		word, about := pflag.UnquoteUsage(t.root.PersistentFlags().Lookup(name))
		fmt.Fprintf(&out, "  %-14s %s\n", strings.TrimSpace("--"+name+" "+word), about)
	}
	fmt.Fprintln(&out, "\nswarmdeck help COMMAND tells of one, swarmdeck help --all lists everything.")
	_, err := w.Write(out.Bytes())
	return err
}

// foreign are words of other programs, each with the commands that do here what is meant.
// A word that is a command's verb, and only a noun is missing, needs no line.
const foreign = `
ps: status, agent list
top: status
dashboard: status
health: status, doctor
info: status, version
logs: log
tail: log
get: show
describe: show
inspect: show
cat: show
ls: agent list, task list
list: agent list, task list
start: agent start, session start
stop: agent stop, estop on
kill: task cancel, agent stop
halt: estop on
rm: agent delete, task cancel
remove: agent delete
del: agent delete
exec: run
sh: run
shell: run, agent attach
launch: add, run
spawn: add, subagent spawn
new: add, task dispatch
create: add, agent create
init: project init
install: add, completion
setup: add, doctor
login: operator set, attach
auth: operator set
user: operator
users: operator list
connect: attach
ssh: attach
ui: serve, demo
tui: demo
daemon: serve
server: serve
approve: approval approve
deny: approval deny
reject: approval deny
yes: approval approve
ask: tell
say: tell
prompt: tell
send: tell
chat: tell
message: tell
diff: review show
changes: review show
commit: merge
pr: push
rebase: merge
worktree: agent create, review list
history: audit list, agent history
events: audit list, dag events
queue: task list
jobs: task list
job: task
cron: task dispatch
wait: task wait
config: project, keys list
settings: keys list, theme list
apply: up
deploy: up
down: estop on, agent stop
cost: status, budget list
usage: status, budget list
permissions: policy list, grant list
env: secret set
key: secret set, keys
network: egress list
allow: egress allow
update: version
upgrade: version
backup: store backup
db: store check
`

// verbs are other words for what is done to a noun: the first that the noun has is meant.
const verbs = `
ls: list
ps: list
all: list
get: show
info: show
describe: show
inspect: show
status: show, list
view: show
cat: show
new: create, dispatch, add, spawn, propose, request
make: create
add: create, dispatch, load, allow, set
create: add, dispatch, spawn, load, propose, set
run: dispatch, invoke, start, assign
exec: dispatch, invoke
submit: dispatch
start: resume, dispatch
rm: delete, remove, cancel, withdraw, unload, revoke, stop
del: delete, remove, cancel
remove: delete, cancel, unload, revoke
delete: remove, cancel, unload, revoke, stop
destroy: delete, remove
kill: stop, cancel
stop: cancel, off
abort: cancel, deny
end: stop, cancel
logs: log
tail: log
output: log, show
yes: approve
accept: approve
allow: approve
ok: approve
no: deny
reject: deny
refuse: deny
say: tell
send: tell, publish
ask: tell
prompt: tell
rerun: retry
requeue: retry
unpause: resume
continue: resume
history: list, log
edit: set
update: set
enable: on, activate
disable: off, withdraw
`

// meant are the commands that a table has for a word, but those that cmd lacks.
func meant(table string, cmd *cobra.Command, word string) (all []string) {
	_, line, _ := strings.Cut(table, "\n"+word+": ")
	line, _, _ = strings.Cut(line, "\n")
	for name := range strings.SplitSeq(line, ", ") {
		found, rest, err := cmd.Find(strings.Fields(name))
		if name != "" && err == nil && found != cmd && len(rest) == 0 {
			all = append(all, name)
		}
	}
	return all
}

// unknownCommand names what is meant by a word that is no command of cmd, or like it.
func unknownCommand(cmd *cobra.Command, word string) error {
	cmd.SuggestionsMinimumDistance = 2
	low := strings.ToLower(word)
	var near []string
	if cmd.HasParent() {
		near = meant(verbs, cmd, low)
		near = near[:min(1, len(near))]
	} else {
		near = meant(foreign, cmd, low)
	}
	if len(near) == 0 {
		near = cmd.SuggestionsFor(word)
	}
	if len(near) == 0 && !cmd.HasParent() { // a verb without its noun
		for _, noun := range cmd.Commands() {
			if child(noun, low) != nil {
				near = append(near, noun.Name()+" "+low)
			}
		}
	}
	hint := "one of " + strings.Join(names(cmd), ", ")
	switch {
	case len(near) > 0:
		hint = "did you mean " + strings.Join(near[:min(4, len(near))], " or ") + "?"
	case !cmd.HasParent():
		hint = "swarmdeck help lists the commands"
	}
	where := strings.TrimSpace("swarmdeck " + commandPath(cmd))
	return usage("command", "unknown command %q for %q; %s", core.Clip(word), where, hint)
}

// foreignFlags are flags of other programs, with what is meant here.
var foreignFlags = map[string]string{
	"json": "-o json", "format": "-o json", "verbose": "-o wide", "v": "version, or -o wide", "version": "version", "all": "--page-size 100", "a": "--page-size 100",
	"n": "--page-size N, or --lines N of log", "limit": "--page-size N", "tail": "--lines N of log", "f": "-f of log", "force": "--yes", "y": "--yes", "q": "-o json", "quiet": "-o json",
	"db": "--data FILE", "user": "--as NAME", "namespace": "--tenant ID", "dry-run": "--read-only", "no-color": "--color never", "model": "agent model NAME VALUE",
	"cwd": "--dir DIR", "workdir": "--dir DIR", "C": "--dir DIR", "d": "serve, which runs without a screen", "detach": "serve, which runs without a screen", "m": "the text as an argument", "message": "the text as an argument",
}

// flagNear says what an unknown flag of cmd is like; "" for nothing.
func flagNear(cmd *cobra.Command, name string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		all.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := all.SuggestionsFor(name); len(name) > 1 && len(near) > 0 {
		slices.Sort(near)
		return "--" + near[0]
	}
	return foreignFlags[name]
}
