package e2e

import (
	"strings"
	"testing"
)

// forkScript has an agent do two things with its shell, and forks it at the
// second call: the fork has what the first left and not what the second did,
// knows what was said, and goes on in a directory of its own. ASKED waits for
// the agent's question, and ENDS for its newest task.
const forkScript = `
up $HERE/EXAMPLE
await -t 120s agent AGENT status=idle
agent show AGENT -o json
capture DIR dir

agent assign AGENT 'RUN: echo first > first.txt'
ASKED
ENDS AGENT
agent assign AGENT 'RUN: echo second > second.txt'
ASKED
ENDS AGENT
exists $DIR/first.txt $DIR/second.txt

# The second call of the agent, and the state before it.
dag calls --agent AGENT -o json --page-size 1
capture CALL call_event
dag fork AGENT --at $CALL --dry-run -o json
stdout '"exact":true.*as it was at the event'
stdout '"continued":"record"'
dag fork AGENT --at $CALL --name fork --to other --task 'RUN: cat first.txt > mine.txt; ls >> mine.txt' -o json
capture FORK dir
exists $FORK/first.txt
! exists $FORK/second.txt

# It goes on there.
ASKED
ENDS fork
exec cat $FORK/mine.txt
stdout '^first$'
! stdout 'second'
! exists $DIR/mine.txt
agent log fork --page-size 50
stdout 'continued from record: what AGENT had said and done'
agent show fork -o json
stdout '"forked":.*"continued":"record"'
stdout '"branch":"other"'

# What it does is its own, and the record tells where it comes from.
dag forks --of fork -o json
stdout 'FORKED_FROM'
dag events --agent AGENT --kind agent_forked -o json
stdout '"to_branch":"other".*"mode":"snapshot"'
dag resource list --agent fork -o json
stdout '"driver":"files"'
dag calls --agent fork -o json
stdout 'mine.txt'

# Asked again it needs no second telling.
agent assign fork 'SAY: still here'
ENDS fork
agent log fork --page-size 5
! stdout 'continued from record'
audit verify
audit reconcile
`

func TestAForkOfARealAgentGoesOnInItsOwnDirectory(t *testing.T) {
	t.Parallel()
	for name, c := range realAgents {
		t.Run(name, func(t *testing.T) {
			play, _, _ := withAgents(t, name)
			var script strings.Builder
			for line := range strings.Lines(strings.NewReplacer("EXAMPLE", name, "AGENT", c.agent).Replace(forkScript)) {
				switch verb, who, _ := strings.Cut(strings.TrimSpace(line), " "); verb {
				case "ASKED":
					script.WriteString(allowed("execute"))
				case "ENDS":
					script.WriteString("agent history " + who + " -o json --page-size 1\ncapture T task_id\nawait -t 120s task $T status=succeeded\n")
				default:
					script.WriteString(line)
				}
			}
			play(script.String())
		})
	}
}
