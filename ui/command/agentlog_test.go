package command_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestOfAnAgentsLogTheNewestIsKept and it says what was dropped: a flood is not more
// than the tenant's retention allows, whatever its tasks say.
func TestOfAnAgentsLogTheNewestIsKept(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_test")
	for _, bad := range []string{"logs --mib 0", "logs --mib 2000000", "tasks --mib 1"} {
		if code, _, details := d.fails(2, "tenant retention set "+bad); code != "INVALID_INPUT" || details["field"] != "mib" {
			t.Errorf("%s: %s %v", bad, code, details)
		}
	}
	expect.Row(t, d.object("tenant retention set logs --mib 1"), "bytes", float64(1<<20))
	d.line(`agent create bob --project p --shell 'i=0; while [ $i -lt 12000 ]; do i=$((i+1)); echo "line $i of a flood that goes on and on"; done; echo last'`)
	const size = 12000 + 2 // lines, with what it was told
	for range 2 {
		d.line("agent assign bob go --wait")
	}
	lines := d.objects("agent log bob --page-size 100 --page 1")
	if !strings.Contains(fmt.Sprint(lines[0]), "last") {
		t.Errorf("its end: %v", lines[0])
	}
	total := int(lines[len(lines)-1]["total_count"].(float64))
	if total < 3000 || total > 10000 {
		t.Errorf("%d of %d lines are kept", total, 2*size)
	}
	pages := (total + 99) / 100
	lines = d.objects(fmt.Sprintf("agent log bob --page-size 100 --page %d", pages))
	oldest := lines[len(lines)-2]
	if want := fmt.Sprintf("%d lines before this one were dropped: of the log of each agent 1 MiB are kept", 2*size-total+1); oldest["message"] != want || oldest["level"] != "WARN" {
		t.Errorf("its first line is %v, want %s", oldest, want)
	}
	d.line("audit reconcile")
	d.line("agent delete bob --yes")
	d.line("audit reconcile")
	d.line("agent create bob --project p -- true")
	if lines := d.objects("agent log bob --page 1"); len(lines) != 1 {
		t.Errorf("the next of its name has %v", lines)
	}
}
