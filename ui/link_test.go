package ui

import "testing"

func TestEnterOnASheetOpensWhatIsUnderTheCursor(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("1", "enter", "G", "enter")
	r.has("go test ./part9") // of the agent's history
	r.keys("q")
	r.has("history (1)")
	r.keys("5", "enter")
	r.has("reason")
	for range 20 { // to the task that the decision is bound to
		if r.m.focused().Selected(r.m.env()).Row == id("tk", 6) {
			break
		}
		r.keys("j")
	}
	r.keys("enter")
	r.has("go test")
	r.keys("q", "k", "enter")
	r.has("reason") // a line that leads nowhere
}

func TestEnterOnASheetFoldsADocument(t *testing.T) {
	r := newRig(t, 80, 24)
	r.keys("4", "enter")
	r.has(`"status": "queued"`)
	r.keys("Z")
	r.lacks(`"status": "queued"`)
	r.has(`"state": {"status":"queued"} 1 member`)
	r.keys("/", "\"", "q", "u", "e", "u", "enter")
	r.has(`"status": "queued"`) // a search opens what it finds
	r.keys("z")
	r.has(`"state": {"status":"queued"} 1 member`)
}
