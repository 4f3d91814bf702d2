package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// lineage is a record that is walked from what it led to back to who asked.
type lineage struct {
	*user
	t      *testing.T
	data   []string                   // flags that name the data file
	events map[string]json.RawMessage // by id
}

// told is what a test reads of an event.
type told struct {
	EventID string `json:"event_id"`
	Kind    string `json:"kind"`
	List    string `json:"list"`
	TaskID  string `json:"task_id"`
	AskedBy string `json:"asked_by"`
	Asker   string `json:"asked_kind"`
	Nodes   []struct {
		ID       string `json:"id"`
		Metadata struct {
			SHA256 string `json:"sha256"`
		} `json:"metadata"`
	} `json:"nodes"`
}

// rows are the objects that a command prints.
func (l *lineage) rows(args ...string) (all []json.RawMessage) {
	l.t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(l.ok(append(append([]string{}, args...), l.data...)...)), "\n") {
		if line != "" {
			all = append(all, json.RawMessage(line))
		}
	}
	return all
}

// read reads every event.
func (l *lineage) read() {
	l.t.Helper()
	l.events = map[string]json.RawMessage{}
	for page := 1; len(l.events) == (page-1)*100; page++ {
		for _, row := range l.rows("dag", "events", "--page-size", "100", "--page", strconv.Itoa(page), "-o", "json") {
			var e told
			if json.Unmarshal(row, &e) == nil && e.EventID != "" {
				l.events[e.EventID] = row
			}
		}
	}
	expect.Must(l.t, len(l.events) != 0, "the record is empty")
}

func (l *lineage) event(id string) (e told) {
	_ = json.Unmarshal(l.events[id], &e)
	return e
}

// leads demands that a node leads back to a run that a person asked for, and returns the
// tasks on the way.
func (l *lineage) leads(node string) (tasks map[string]bool) {
	l.t.Helper()
	tasks = map[string]bool{}
	asked, begun := false, false
	for _, row := range l.rows("dag", "lineage", node, "--depth", "100", "--most", "10000", "-o", "json") {
		var s struct {
			Node struct {
				ID string `json:"id"`
			} `json:"node"`
		}
		expect.No(l.t, json.Unmarshal(row, &s))
		e := l.event(s.Node.ID)
		if e.TaskID != "" {
			tasks[e.TaskID] = true
		}
		begun = begun || e.Kind == "run_started"
		asked = asked || e.Kind == "run_started" && e.AskedBy != "" && e.Asker == "operator"
	}
	expect.True(l.t, begun && asked, "%s leads to no run that a person asked for (a run: %v)", node, begun)
	return tasks
}

// kept demands that the record has a file's content.
func (l *lineage) kept(path, sum string) {
	l.t.Helper()
	for id := range l.events {
		for _, n := range l.event(id).Nodes {
			if n.ID == "file:"+path && n.Metadata.SHA256 == sum {
				return
			}
		}
	}
	l.t.Errorf("no event states %s as it is, sha256 %s", path, sum)
}

func TestEveryFileAndAnswerOfAScenarioLeadsBackToWhoAsked(t *testing.T) {
	t.Parallel()
	u := newPlayer(t)
	text := expect.Of(os.ReadFile("examples/scripts/lineage.txtar"))(t)
	list := filepath.Join(u.home, "files")
	script, files, _ := strings.Cut(string(text), "\n-- ")
	script += "\nexec sh -c 'find $WORK/site -type f -exec sha256sum {} + >" + list + "'\n"
	data := filepath.Join(u.home, "own.db")
	code, out, stderr := u.play(script+"\n-- "+files, "--data", data)
	expect.Must(t, code == 0, "exit code %d\n%s%s", code, out, stderr)
	l := &lineage{user: u, t: t, data: []string{"--data", data}}
	l.read()

	written := expect.Of(os.ReadFile(list))(t)
	n := 0
	for line := range strings.Lines(string(written)) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), "  ")
		l.leads("Resource:file:" + path)
		l.kept(path, sum)
		n++
	}
	expect.True(t, n >= 10, "the scenario wrote %d files: %s", n, written)

	answers := 0
	for _, row := range l.rows("result", "list", "--page-size", "100", "-o", "json") {
		var r struct {
			TaskID string `json:"task_id"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal(row, &r); err != nil || r.TaskID == "" {
			continue
		}
		answers++
		last := ""
		for _, row := range l.rows("dag", "events", "--task", r.TaskID, "--page-size", "100", "-o", "json") {
			var e told
			if json.Unmarshal(row, &e) == nil && e.List == "result" {
				last = e.EventID
				break
			}
		}
		if last == "" {
			t.Errorf("the answer of task %s is not in the record", r.TaskID)
			continue
		}
		expect.True(t, l.leads("Event:" + last)[r.TaskID], "the answer of task %s leads past the task", r.TaskID)
	}
	expect.True(t, answers >= 6, "the scenario has %d answers", answers)
}
