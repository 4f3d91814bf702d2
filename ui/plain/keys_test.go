package plain_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// What an action of the cockpit is in plain lines: a command, or a word of the
// front end. "" is a move on a screen, which lines have no need of: their
// lists are printed whole, by page, narrowed by flags.
var lineOf = map[string]string{
	"help": "help", "next-need": "needs", "estop": "estop on", "quit": "quit", "filter": "task list --match", "messages": "audit list", "show-all": "audit list --all",
	"tenants": "tenant list", "show-engines": "engine list", "palette": "help", "copy": "", "copy-row": "", "links": "", "alone": "", "suspend": "", "redraw": "", "back": "",
	"approve": "answer", "deny": "answer", "abort": "answer", "edit": "answer", "always": "answer", "defer": "answer",
	"pause": "agent pause", "create": "agent create", "invoke": "skill invoke", "follow": "agent log --follow", "pager": "agent log", "open": "task show",
	"show-subagents": "subagent list", "show-executions": "skill executions", "show-skills": "skill list", "show-bus": "bus list",
	"show-subscriptions": "bus subscriptions", "show-cad-agents": "cad agent list", "show-workspaces": "cad workspace list",
	"show-workflows": "cad workflow list", "show-conflicts": "cad workspace conflicts", "view": "cad view",
	"arguments": "answer", "timeline": "dag timeline", "show-overview": "overview", "span": "overview --over week", "by": "overview --by project", "mouse": "", "undo": "task undo",
	"story": "story", "since": "story --since 8h", "compare": "dag compare", "travel": "dag at", "fork": "dag fork", "now": "dag timeline", "show-policies": "policy list", "backtest": "policy backtest", "cases": "policy test",
	"work": "agent diff", "terminal": "agent attach", "type": "agent tell", "detach": "", "edit-file": "review edit", "show-reviews": "review list", "review": "review show", "swap": "agent diff",
}

// moves are the actions that only change what a screen shows.
var moves = regexp.MustCompile(`^(focus-|goto-|panes$|history-|last-view$|down$|up$|left$|right$|top$|bottom$|half-|page-|mark|clear-marks$|sort$|next-match$|prev-match$|fold|wrap$|zoom-|roll-|pan-|view-|section|mode$|next-part$|(next|prev)-(hunk|file)$|files$|side-by-side$|viewed$|range$)`)

// ours are the words of the front end itself.
var ours = map[string]bool{"answer": true, "needs": true, "quit": true, "help": true}

func TestEveryKeyOfTheCockpitHasItsLine(t *testing.T) {
	var keys struct {
		Bind []struct {
			Scope, Action, Line string
		} `toml:"bind"`
	}
	err := toml.Unmarshal(expect.Of(os.ReadFile("../keymap/default.toml"))(t), &keys)
	expect.Must(t, err == nil && len(keys.Bind) >= 100, "%d keys: %v", len(keys.Bind), err)
	var commands command.Lexicon
	for _, b := range keys.Bind {
		line, known := b.Line, b.Line != ""
		if !known {
			line, known = lineOf[b.Action]
		}
		words := strings.Fields(line)
		switch {
		case moves.MatchString(b.Action):
		case !known:
			t.Errorf("%s: %s has no line in lineOf: which command does the same?", b.Scope, b.Action)
		case len(words) == 0 || ours[words[0]]:
		case commands.Describe(words).Path == "":
			t.Errorf("%s: %s is %q, which is no command", b.Scope, b.Action, line)
		}
	}
}
