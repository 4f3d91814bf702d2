package command_test

import (
	"fmt"
	"testing"

	"swarmdeck/expect"
)

// TestOfAnAgentsLogTheNewestIsKept and it says what was dropped: a flood is not more
// than the tenant's retention allows, whatever its tasks say.
func TestOfAnAgentsLogTheNewestIsKept(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	for _, bad := range []string{"logs --mib 0", "logs --mib 2000000", "tasks --mib 1"} {
		code, _, details := d.fails(2, "tenant retention set "+bad)
		expect.True(t, code == "INVALID_INPUT" && details["field"] == "mib", "%s: %s %v", bad, code, details)
	}
	expect.Row(t, d.object("tenant retention set logs --mib 1"), "bytes", float64(1<<20))
	d.line(`agent create bob --project p --shell 'i=0; while [ $i -lt 12000 ]; do i=$((i+1)); echo "line $i of a flood that goes on and on"; done; echo last'`)
	const size = 12000 + 2 // lines, with what it was told
	for range 2 {
		d.line("agent assign bob go --wait")
	}
	lines := d.objects("agent log bob --page-size 100 --page 1")
	expect.Has(t, fmt.Sprint(lines[0]), "last", "its end", lines[0])
	total := int(lines[len(lines)-1]["total_count"].(float64))
	expect.True(t, total >= 3000 && total <= 10000, "%d of %d lines are kept", total, 2*size)
	pages := (total + 99) / 100
	lines = d.objects(fmt.Sprintf("agent log bob --page-size 100 --page %d", pages))
	oldest := lines[len(lines)-2]
	want := fmt.Sprintf("%d lines before this one were dropped: of the log of each agent 1 MiB are kept", 2*size-total+1)
	expect.True(t, oldest["message"] == want && oldest["level"] == "WARN", "its first line is %v, want %s", oldest, want)
	d.line("audit reconcile")
	d.line("agent delete bob --yes")
	d.line("audit reconcile")
	d.line("agent create bob --project p -- true")
	lines = d.objects("agent log bob --page 1")
	expect.True(t, len(lines) == 1, "the next of its name has %v", lines)
}
