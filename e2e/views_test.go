package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

func TestTheViewsOfADatabaseSayWhatTheCommandsSay(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	u := newUser(t)
	u.env = append(u.env, "SWARMDECK_DATA="+cluster.Database(t, "views"))
	u.ok("tenant", "create", "t_acme")
	u.ok("task", "dispatch", "--kind", "exec.run", "--wait", "--input", `{"argv":["echo","ÄÖ 你好"]}`, "--priority", "70")
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","x"]}`)
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","y"]}`)
	u.ok("approval", "deny", field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id"), "--reason", `it's "no"`)
	for _, kind := range []struct{ noun, id string }{{"task", "task_id"}, {"approval", "approval_id"}, {"decision", "decision_id"}, {"audit", "event_id"}} {
		view := "swarmdeck_" + strings.TrimSuffix(kind.noun, "s") + "s"
		if kind.noun == "audit" {
			view = "swarmdeck_audit"
		}
		args := []string{kind.noun, "list", "-o", "json", "--page-size", "100"}
		if kind.noun == "audit" {
			args = append(args, "--all")
		}
		said := rows(t, u.ok(args...))
		told := rows(t, cluster.SQL(t, "views", "select row_to_json(v) from "+view+" v"))
		expect.Must(t, len(said) != 0 && len(said) == len(told), "%s list has %d, the view %d", kind.noun, len(said), len(told))
		byID := map[any]map[string]any{}
		for _, row := range told {
			byID[row[kind.id]] = row
		}
		for _, want := range said {
			row := byID[want[kind.id]]
			expect.True(t, row != nil, "%s %v is not in the view", kind.noun, want[kind.id])
			for column, got := range row {
				if column != "record" && !same(got, member(want, column)) {
					t.Errorf("%s %v: %s is %v, want %v", kind.noun, want[kind.id], column, got, member(want, column))
				}
			}
			for name, got := range row["record"].(map[string]any) {
				_, shown := want[name]
				expect.True(t, !shown || same(got, want[name]), "%s %v: record has %s %v, want %v", kind.noun, want[kind.id], name, got, want[name])
			}
		}
	}
}

// rows are JSON objects, one a line.
func rows(t *testing.T, lines string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(lines) {
		row := map[string]any{}
		expect.No(t, json.Unmarshal([]byte(line), &row), line)
		all = append(all, row)
	}
	return all
}

// member is what a command says in place of a column.
func member(row map[string]any, column string) any {
	if v, ok := row[column]; ok && column != "agent" {
		return v
	}
	for within, name := range map[string]string{"action": "kind", "agent": "name", "payload": column} {
		if part, ok := row[within].(map[string]any); ok && name == strings.Replace(column, "agent", "name", 1) {
			return part[name]
		}
	}
	return row[column]
}

// same compares a column with a member: one that is not there is null.
func same(got, want any) bool {
	if a, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got)); err == nil {
		b, err := time.Parse(time.RFC3339Nano, fmt.Sprint(want))
		return err == nil && a.Equal(b)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	return string(a) == string(b)
}
